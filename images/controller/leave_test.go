package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/images/controller/internal/leave"
)

func TestParseLeave(t *testing.T) {
	t.Parallel()
	none := func(string) string { return "" }
	o, err := parse([]string{"leave"}, none)
	require.NoError(t, err)
	assert.True(t, o.leave)
	o, err = parse(nil, none)
	require.NoError(t, err)
	assert.False(t, o.leave)
}

func TestGoodbyeNeverGivesUp(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	results := []struct {
		progress leave.Progress
		err      error
		pause    time.Duration
	}{
		{err: errors.New("no answer"), pause: firstRetry},
		{err: errors.New("no answer"), pause: 2 * firstRetry},
		{progress: leave.Waiting, pause: awaitInterval},
		{err: errors.New("no answer"), pause: firstRetry}, // after a good pass an error is new
		{progress: leave.Asleep, pause: sleepInterval},
		{progress: leave.Gone, pause: sleepInterval},
	}
	var pauses []time.Duration
	g := &goodbye{
		log: logr.Discard(),
		pass: func(context.Context) (leave.Progress, error) {
			result := results[len(pauses)]
			return result.progress, result.err
		},
		wait: func(_ context.Context, length time.Duration) {
			if pauses = append(pauses, length); len(pauses) == len(results) {
				cancel()
			}
		},
	}
	g.run(ctx)
	for i, result := range results {
		assert.Equal(t, result.pause, pauses[i], "pause %d", i)
	}
	assert.InDelta(t, time.Now().Unix(), g.turned.Load(), 60)
}

func TestGoodbyeHealth(t *testing.T) {
	t.Parallel()
	g := &goodbye{}
	probe := func() int {
		answer := httptest.NewRecorder()
		g.health(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/healthz", nil))
		return answer.Code
	}
	g.turned.Store(time.Now().Unix())
	assert.Equal(t, http.StatusOK, probe())
	g.turned.Store(time.Now().Add(-time.Hour).Unix())
	assert.Equal(t, http.StatusServiceUnavailable, probe(), "a pass that hangs")
}
