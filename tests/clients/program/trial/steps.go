package trial

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

const (
	smallSize   = 1000
	rangeOffset = 100
	rangeLength = 200
	pause       = 500 * time.Millisecond

	listingPatience = 10 * time.Second
	listingTick     = 100 * time.Millisecond
)

var errDifferent = errors.New("what was read is not what was stored")

type step struct {
	name string
	able bool
	try  func(context.Context) error
}

type tester struct {
	Client

	p     Parameters
	small []byte
}

// steps are in an order in which each finds what it needs; the names are the columns of the matrix.
func (t *tester) steps() []step {
	t.small = random(smallSize)
	return []step{
		{"put", t.Put != nil, func(ctx context.Context) error { return t.Put(ctx, t.key("small"), t.small) }},
		{"get", t.Get != nil, func(ctx context.Context) error { return t.expect(ctx, t.key("small"), t.small) }},
		{"range", t.Range != nil, t.ranged},
		{"multipart", t.PutParts != nil, t.parts},
		{"copy", t.Copy != nil, t.copied},
		{"list", t.List != nil, func(ctx context.Context) error { return t.count(ctx, "list/", t.p.Listed) }},
		{"delete", t.Delete != nil, t.deleted},
		{"presign-get", t.SignGet != nil, t.signedGet},
		{"presign-put", t.SignPut != nil, t.signedPut},
		{"past-expiry", t.GoOn != nil || t.Put != nil && t.Get != nil, t.pastExpiry},
	}
}

func (t *tester) key(name string) string { return t.p.Prefix + name }

func random(size int) []byte {
	content := make([]byte, size)
	_, _ = rand.Read(content) // never fails
	return content
}

func same(want, got []byte) error {
	if !bytes.Equal(want, got) {
		return fmt.Errorf("%d bytes of %d: %w", len(got), len(want), errDifferent)
	}
	return nil
}

func (t *tester) expect(ctx context.Context, key string, want []byte) error {
	got, err := t.Get(ctx, key)
	if err != nil {
		return err
	}
	return same(want, got)
}

func (t *tester) ranged(ctx context.Context) error {
	got, err := t.Range(ctx, t.key("small"), rangeOffset, rangeLength)
	if err != nil {
		return err
	}
	return same(t.small[rangeOffset:rangeOffset+rangeLength], got)
}

func (t *tester) parts(ctx context.Context) error {
	content := random(t.p.Large)
	if err := t.PutParts(ctx, t.key("large"), content); err != nil {
		return fmt.Errorf("up: %w", err)
	}
	if err := t.expect(ctx, t.key("large"), content); err != nil {
		return fmt.Errorf("down: %w", err)
	}
	return nil
}

func (t *tester) copied(ctx context.Context) error {
	if err := t.Copy(ctx, t.key("small"), t.key("copy")); err != nil {
		return err
	}
	return t.expect(ctx, t.key("copy"), t.small)
}

func (t *tester) count(ctx context.Context, prefix string, want int) error {
	got, err := t.List(ctx, prefix)
	if err != nil {
		return err
	}
	if got != want {
		return fmt.Errorf("%d objects are below %s, want %d", got, prefix, want)
	}
	return nil
}

func (t *tester) deleted(ctx context.Context) error {
	if err := t.count(ctx, t.key("many/"), t.p.Many); err != nil {
		return fmt.Errorf("before: %w", err)
	}
	if err := t.Delete(ctx, t.key("many/")); err != nil {
		return err
	}
	if err := t.emptied(ctx, t.key("many/")); err != nil {
		return fmt.Errorf("after: %w", err)
	}
	return nil
}

// emptied waits until nothing is listed: two replicas of three have deleted what is answered for, and a listing may for
// a moment show what the third has not.
func (t *tester) emptied(ctx context.Context, prefix string) error {
	patience := time.After(listingPatience)
	ticker := time.NewTicker(listingTick)
	defer ticker.Stop()
	for {
		err := t.count(ctx, prefix, 0)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-patience:
			return err
		case <-ticker.C:
		}
	}
}

func (t *tester) signedGet(ctx context.Context) error {
	url, err := t.SignGet(ctx, t.key("small"))
	if err != nil {
		return fmt.Errorf("sign: %w", err)
	}
	got, err := fetch(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	return same(t.small, got)
}

func (t *tester) signedPut(ctx context.Context) error {
	url, err := t.SignPut(ctx, t.key("signed"))
	if err != nil {
		return fmt.Errorf("sign: %w", err)
	}
	content := random(smallSize)
	if _, err := fetch(ctx, http.MethodPut, url, content); err != nil {
		return err
	}
	return t.expect(ctx, t.key("signed"), content)
}

// fetch uses a signed URL as one does who knows nothing else.
func fetch(ctx context.Context, method, url string, body []byte) (_ []byte, err error) {
	client, err := HTTPClient()
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("use the URL: %w", err)
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", response.Status, content)
	}
	return content, nil
}

func (t *tester) pastExpiry(ctx context.Context) error {
	if t.GoOn != nil {
		return t.GoOn(ctx, t.p.Past)
	}
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	for started := time.Now(); time.Since(started) < t.p.Past; {
		content := random(smallSize)
		if err := t.Put(ctx, t.key("living"), content); err != nil {
			return fmt.Errorf("put after %s: %w", time.Since(started), err)
		}
		if err := t.expect(ctx, t.key("living"), content); err != nil {
			return fmt.Errorf("get after %s: %w", time.Since(started), err)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
