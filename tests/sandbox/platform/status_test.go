package platform

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/tests/sandbox/statedir"
)

func TestHide(t *testing.T) {
	t.Parallel()

	values := map[string]any{
		"internal": map[string]any{
			"planes": map[string]any{"a": map[string]any{"seed": "s", "nodeIDs": []any{"id"}}},
			"tls":    map[string]any{"ca": "c", "key": "k"},
		},
	}
	want := map[string]any{
		"internal": map[string]any{
			"planes": map[string]any{"a": map[string]any{"seed": "(hidden)", "nodeIDs": []any{"id"}}},
			"tls":    map[string]any{"ca": "c", "key": "(hidden)"},
		},
	}
	assert.Equal(t, want, hide(values))
}

func TestNames(t *testing.T) {
	t.Parallel()

	def := Definition{Name: "system-s3"}
	assert.Equal(t, "systemS3", def.ValuesKey())
	assert.Equal(t, "900-system-s3", def.Folder())
	assert.Equal(t, "validatingwebhookconfigurations", plural("ValidatingWebhookConfiguration"))
	assert.Equal(t, "policies", plural("Policy"))
}

func TestFailureIn(t *testing.T) {
	t.Parallel()

	cases := map[string]struct {
		reason, queue, want string
	}{
		"empty": {reason: "nothing to do", queue: "Queue 'main': length 0, status: 'waiting for task 3s'\n"},
		"busy":  {reason: "working is not failing", queue: "Queue 'main': length 1\n\n 1. ModuleRun:main:system-s3:doStartup\n"},
		"stuck": {
			reason: "the error without the count of attempts", want: "run helm install: boom",
			queue: "Queue 'main': length 2\n\n 1. ModuleRun:main:system-s3:failures 2:run helm install: boom\nmore\n 2. Converge\n",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, c.want, failureIn(c.queue), c.reason)
		})
	}
}

func TestLogsLeaveOutTheLooking(t *testing.T) {
	t.Parallel()

	env := Env{Dir: statedir.Dir(t.TempDir())}
	require.NoError(t, env.Dir.Create())

	text := "{\"msg\":\"one\"}\n{\"msg\":\"complete\",\"operator.component\":\"debugEndpoint\"}\n{\"level\":\"error\",\"msg\":\"two\"}\n"
	require.NoError(t, os.WriteFile(env.Dir.Log(OperatorProcess), []byte(text), privateFile))

	var out strings.Builder
	require.NoError(t, Logs(env, OperatorProcess, &out))
	assert.Equal(t, "{\"msg\":\"one\"}\n{\"level\":\"error\",\"msg\":\"two\"}\n", out.String())
	assert.Equal(t, []string{"two"}, Errors(env, 5))
}

func TestErrorIn(t *testing.T) {
	t.Parallel()

	assert.Equal(t, "now run it failed boom",
		errorIn(`{"level":"error","time":"now","logger":"run","msg":"it failed","error":"boom","stacktrace":[{"ID":1}]}`))
	assert.Empty(t, errorIn(`{"level":"info","msg":"fine"}`))
	assert.Equal(t, "panic: nil map", errorIn("panic: nil map\n"))
	assert.Empty(t, errorIn("goroutine 1 [running]:\n"))
}
