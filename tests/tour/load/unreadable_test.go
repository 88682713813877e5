package load

import (
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"
)

// TestWhatCannotBeReadIsTold: an object that the store does not answer for is neither right nor lost.
func TestWhatCannotBeReadIsTold(t *testing.T) {
	g := start(t)
	l := g.worked(t, "unreadable", nil)
	broken := g.options
	broken.Retryer, broken.HTTPClient = aws.NopRetryer{}, &http.Client{Transport: &unreliable{before: 1}}
	l.s3 = s3.New(broken)
	key, _ := l.such(t, present)
	l.readBack(t.Context(), time.Now(), key)
	found := l.takeFindings()
	require.Len(t, found, 1)
	require.Equal(t, Unreadable, found[0].Kind)
	require.Equal(t, key, found[0].Key)
}
