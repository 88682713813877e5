package loopback

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/tests/suite/peer"
	"github.com/deckhouse/system-s3/tests/suite/table"
)

var (
	only  = flag.String("only", "", "run only the tests of the suite whose names match the regular expression")
	told  = flag.String("told", "", "write to this file what each test said")
	trace = flag.Bool("trace", false, "print the requests and what they were answered")
)

func TestPeersSuite(t *testing.T) {
	expected, err := table.Load()
	require.NoError(t, err)
	f := newFront(t)
	o := peer.Options{Parallel: 8}
	if *only != "" {
		o.Only = regexp.MustCompile(*only)
	}
	if *trace {
		f.Trace = os.Stderr
	}
	var log bytes.Buffer
	o.Told = func(name string, took time.Duration, said error) {
		text := "ok"
		if said != nil {
			text = strings.ReplaceAll(said.Error(), "\n", " ")
		}
		fmt.Fprintf(&log, "%s\t%.1f\t%s\n", name, took.Seconds(), text)
	}
	results, err := peer.Run(t.Context(), f, expected, o)
	require.NoError(t, err)
	if *told != "" {
		require.NoError(t, os.WriteFile(*told, log.Bytes(), 0o600))
	}
	j := expected.Judge(results, peer.Names(), o.Only == nil)
	var summary bytes.Buffer
	j.Print(&summary, expected)
	t.Log("\n" + summary.String())
	require.Empty(t, j.Wrong)
}
