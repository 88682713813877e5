package layout_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/deckhouse/system-s3/lib/layout"
)

func TestUnneeded(t *testing.T) {
	finished, unfinished := layout.Reference{}, layout.Reference{Unfinished: true}
	gone, part := layout.Reference{Gone: true}, layout.Reference{Part: true}
	for name, c := range map[string]struct {
		reason     string
		references []layout.Reference
		want       bool
	}{
		"an upload that was killed":        {"nobody was promised anything", []layout.Reference{unfinished}, true},
		"killed, and one that is gone":     {"what is gone needs nothing", []layout.Reference{unfinished, gone}, true},
		"all are gone":                     {"Garage is about to forget it", []layout.Reference{gone}, true},
		"a finished object":                {"it was acknowledged", []layout.Reference{finished}, false},
		"the same bytes in a finished one": {"equal blocks are kept once", []layout.Reference{unfinished, finished}, false},
		"a part of a multipart upload":     {"it may have been acknowledged", []layout.Reference{part}, false},
		"a part of an aborted one":         {"only its end says that it is not needed", []layout.Reference{{Part: true, Unfinished: true}}, false},
		"no reference":                     {"nothing is known of it", nil, false},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, layout.Unneeded(c.references), c.reason) })
	}
}
