// Package readiness tells whether this very Garage node serves: it asks the node itself a question signed with the
// internal key, as every consumer's request will be.
package readiness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	// lasting is how long an answer is good: probes of several kubelets and people cost Garage one question.
	lasting = time.Second
	timeout = 3 * time.Second
	// absentBucket is asked for: only after it has accepted key and signature does Garage say that it is not there.
	// The name has no hash, so it never belongs to a SystemBucket.
	absentBucket = "system-s3-readiness"
	maxAnswer    = 4 << 10
)

// ErrDraining is the answer of a gateway that is about to stop.
var ErrDraining = errors.New("the gateway is stopping")

// Signer signs a request with the internal key.
type Signer interface {
	Sign(r *http.Request, now time.Time) error
}

// Door tells whether clients are let in, or are about to be.
type Door interface {
	IsOpen() bool
	Expected() bool
}

// Elsewhere is where the store has moved to.
type Elsewhere interface {
	To() string // empty while the store is here
	Reach(ctx context.Context) error
}

var errShut = errors.New("the replica serves no clients: it has no role, or the controller has not opened its epoch yet")

// Probe asks. Safe for concurrent use.
type Probe struct {
	S3URL     string // of Garage, without a path
	Transport http.RoundTripper
	Signer    Signer
	HasLayout func(context.Context) (bool, error) // asks Garage's admin API
	Now       func() time.Time
	Door      Door // nil is an open one
	// Elsewhere is where the store has moved to: that it can be reached is all that counts then.
	Elsewhere Elsewhere

	mu       sync.Mutex
	asked    time.Time
	last     error
	draining bool
}

// Drain makes the gateway unready for good.
func (p *Probe) Drain() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.draining = true
}

// Draining tells whether Drain was called.
func (p *Probe) Draining() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.draining
}

// Check is nil when the node serves, and tells why it does not otherwise.
func (p *Probe) Check(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.draining {
		return ErrDraining
	}
	if to := p.Elsewhere.To(); to == "" && p.Door != nil && !p.Door.IsOpen() {
		if p.Door.Expected() {
			return nil // clients wait at the door
		}
		return errShut
	}
	if age := p.Now().Sub(p.asked); !p.asked.IsZero() && age >= 0 && age < lasting {
		return p.last
	}
	// The asker that leaves must not spoil the answer that others will get.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	p.last = p.ask(ctx)
	p.asked = p.Now()
	return p.last
}

func (p *Probe) ask(ctx context.Context) error {
	if p.Elsewhere.To() != "" {
		return p.Elsewhere.Reach(ctx) //nolint:wrapcheck // it says what it is
	}
	refusal := p.askS3(ctx)
	if refusal == nil {
		return nil
	}
	// Before there is a layout no node can know a key; the node does its part when it answers at all.
	exists, err := p.HasLayout(ctx)
	if err != nil {
		return errors.Join(refusal, fmt.Errorf("ask Garage for its layout: %w", err))
	}
	if !exists {
		return nil
	}
	return refusal
}

func (p *Probe) askS3(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.S3URL+"/"+absentBucket, http.NoBody)
	if err != nil {
		return fmt.Errorf("ask Garage's S3: %w", err)
	}
	if err := p.Signer.Sign(request, p.Now()); err != nil {
		return fmt.Errorf("sign the question: %w", err)
	}
	response, err := p.Transport.RoundTrip(request)
	if err != nil {
		return fmt.Errorf("ask Garage's S3: %w", err)
	}
	defer response.Body.Close() //nolint:errcheck // the answer has been read
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("read the answer of Garage's S3: %w", err)
	}
	if response.StatusCode == http.StatusNotFound && strings.Contains(string(body), "NoSuchBucket") {
		return nil
	}
	if response.StatusCode == http.StatusForbidden {
		return errors.New("the node does not know the internal key yet")
	}
	return fmt.Errorf("the node's S3 answered with status %d", response.StatusCode)
}
