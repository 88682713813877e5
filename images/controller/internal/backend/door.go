package backend

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// Door is the gateway of a replica, asked to let clients in or to hold their writes.
type Door struct {
	Name  string // the Pod's
	URL   string // of the admin port
	Token string
	HTTP  *http.Client
}

const maxDoorAnswer = 4 << 10 // bytes

// IsOpen tells whether the replica lets clients in.
func (d Door) IsOpen(ctx context.Context) (bool, error) {
	var told struct {
		Open bool `json:"open"`
	}
	err := d.ask(ctx, http.MethodGet, "door", nil, &told)
	return told.Open, err
}

// Open lets clients in, for the epoch.
func (d Door) Open(ctx context.Context, epoch int) error {
	return d.ask(ctx, http.MethodPut, "door", map[string]any{"epoch": epoch, "open": true}, nil)
}

// Expect makes clients come and wait: the replica is about to let them in.
func (d Door) Expect(ctx context.Context, epoch int) error {
	return d.ask(ctx, http.MethodPut, "door", map[string]any{"epoch": epoch, "open": false}, nil)
}

// Hold makes writes wait for so long and tells how many are still on their way.
func Hold(ctx context.Context, doors []Door, lasting time.Duration) (writing int, err error) {
	told := make([]struct {
		Writing int `json:"writing"`
	}, len(doors))
	err = all(doors, func(i int, d Door) error {
		return d.ask(ctx, http.MethodPut, "hold", map[string]float64{"seconds": lasting.Seconds()}, &told[i])
	})
	for _, each := range told {
		writing += each.Writing
	}
	return writing, err
}

// StillHeld tells whether every gateway holds writes at this moment, without a break since it was told to.
func StillHeld(ctx context.Context, doors []Door) bool {
	told := make([]struct {
		HeldSeconds float64 `json:"heldSeconds"`
	}, len(doors))
	err := all(doors, func(i int, d Door) error { return d.ask(ctx, http.MethodGet, "hold", nil, &told[i]) })
	for _, each := range told {
		if each.HeldSeconds <= 0 {
			return false
		}
	}
	return err == nil
}

// Release lets writes in again.
func Release(ctx context.Context, doors []Door) error {
	return all(doors, func(_ int, d Door) error { return d.ask(ctx, http.MethodDelete, "hold", nil, nil) })
}

func all(doors []Door, do func(int, Door) error) error {
	failures := make([]error, len(doors))
	var group sync.WaitGroup
	for i, door := range doors {
		group.Go(func() {
			if err := do(i, door); err != nil {
				failures[i] = fmt.Errorf("%s: %w", door.Name, err)
			}
		})
	}
	group.Wait()
	return errors.Join(failures...)
}

func (d Door) ask(ctx context.Context, method, what string, body, answer any) error {
	return d.pose(ctx, question{method, what, body, maxDoorAnswer}, answer)
}

// errUnknown is a gateway that does not know what it is asked about.
var errUnknown = errors.New("HTTP 404")

// question for a gateway.
type question struct {
	method, what string
	body         any   // nil when there is none
	most         int64 // bytes of the answer
}

// pose asks the question; a nil answer is not read.
func (d Door) pose(ctx context.Context, q question, answer any) error {
	what := q.what
	var encoded io.Reader = http.NoBody
	if q.body != nil {
		data, err := json.Marshal(q.body)
		if err != nil {
			return fmt.Errorf("encode the question for the %s: %w", what, err)
		}
		encoded = bytes.NewReader(data)
	}
	request, err := http.NewRequestWithContext(ctx, q.method, d.URL+"/gateway/v1/"+what, encoded)
	if err != nil {
		return fmt.Errorf("ask for the %s: %w", what, err)
	}
	request.Header.Set("Authorization", "Bearer "+d.Token)
	response, err := d.HTTP.Do(request)
	if err != nil {
		return fmt.Errorf("ask for the %s: %w", what, err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode == http.StatusNotFound {
		return fmt.Errorf("ask for the %s: %w", what, errUnknown)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("ask for the %s: HTTP %d", what, response.StatusCode)
	}
	if answer == nil {
		return nil
	}
	if err := json.NewDecoder(io.LimitReader(response.Body, q.most)).Decode(answer); err != nil {
		return fmt.Errorf("decode the answer about the %s: %w", what, err)
	}
	return nil
}
