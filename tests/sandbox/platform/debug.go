package platform

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"
)

// debugTimeout bounds one question to addon-operator; it answers from memory.
const debugTimeout = 5 * time.Second

// debugSocket is the path of addon-operator's debug socket.
type debugSocket string

// operatorState is what addon-operator does with the module.
type operatorState struct {
	Enabled  bool   // it counts the module among the enabled ones
	Released bool   // the Helm release is deployed
	Failure  string // the error that the main queue is stuck at, empty if it is not
}

// get asks for a page of the debug server.
func (s debugSocket) get(ctx context.Context, page string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, debugTimeout)
	defer cancel()

	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", string(s))
		},
	}}

	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://addon-operator"+page, http.NoBody)
	if err != nil {
		return "", fmt.Errorf("ask addon-operator for %s: %w", page, err)
	}

	response, err := client.Do(request)
	if err != nil {
		return "", fmt.Errorf("ask addon-operator for %s: %w", page, err)
	}
	defer response.Body.Close() //nolint:errcheck // Nothing can be done about it after reading.

	body, err := io.ReadAll(response.Body)
	if err != nil {
		return "", fmt.Errorf("ask addon-operator for %s: %w", page, err)
	}

	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("ask addon-operator for %s: %w", page, &answerError{status: response.Status, body: string(body)})
	}

	return string(body), nil
}

// answerError is an answer other than 200.
type answerError struct{ status, body string }

func (e *answerError) Error() string { return e.status + ": " + strings.TrimSpace(e.body) }

// state asks how the module is doing.
func (s debugSocket) state(ctx context.Context, module string) (operatorState, error) {
	text, err := s.get(ctx, "/module/list.json")
	if err != nil {
		return operatorState{}, err
	}

	var list struct {
		EnabledModules []string `json:"enabledModules"`
	}
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return operatorState{}, fmt.Errorf("read the list of enabled modules: %w", err)
	}

	queue, err := s.get(ctx, mainQueue)

	return operatorState{Enabled: slices.Contains(list.EnabledModules, module), Failure: failureIn(queue)}, err
}

// failureIn finds the error that the queue's first task is stuck at, without the
// number of attempts: the same error gives the same text.
func failureIn(queue string) string {
	for line := range strings.Lines(queue) {
		_, after, failed := strings.Cut(line, ":failures ")
		if !failed {
			continue
		}

		attempts, reason, _ := strings.Cut(after, ":")
		if attempts != "0" {
			return strings.TrimSpace(reason)
		}
	}

	return ""
}
