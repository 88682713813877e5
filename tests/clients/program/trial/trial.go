// Package trial is what every client of the matrix that is driven from Go does to a bucket, and how it tells what came
// of it. Clients in other languages print the same lines.
package trial

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
)

// Parameters are the words that the matrix gives every client on its command line.
type Parameters struct {
	// Bucket is the name in S3, from the environment.
	Bucket string
	// Prefix is the client's own: it writes and deletes only below.
	Prefix string
	// Large is the size in bytes of the object that is sent in parts.
	Large int
	// Listed is how many objects are below list/, Many how many there are to delete below Prefix + "many/".
	Listed, Many int
	// Past is how long to go on for a key of the beginning to be over.
	Past time.Duration
}

// Parse reads PREFIX LARGE LISTED MANY PAST, the last in seconds.
func Parse(words []string) (Parameters, error) {
	const count = 5
	if len(words) != count {
		return Parameters{}, fmt.Errorf("want PREFIX LARGE LISTED MANY PAST, got %q", words)
	}
	p := Parameters{Bucket: os.Getenv("BUCKET_NAME"), Prefix: words[0]}
	if p.Bucket == "" {
		return p, errors.New("BUCKET_NAME is not set")
	}
	seconds := 0
	for i, field := range []*int{&p.Large, &p.Listed, &p.Many, &seconds} {
		value, err := strconv.Atoi(words[i+1])
		if err != nil {
			return p, fmt.Errorf("read parameter %d: %w", i+1, err)
		}
		*field = value
	}
	p.Past = time.Duration(seconds) * time.Second
	return p, nil
}

// Client is what a client can do. Nil is what it cannot.
type Client struct {
	Put   func(ctx context.Context, key string, body []byte) error
	Get   func(ctx context.Context, key string) ([]byte, error)
	Range func(ctx context.Context, key string, offset, length int) ([]byte, error)
	// PutParts stores an object in more than one part.
	PutParts func(ctx context.Context, key string, body []byte) error
	Copy     func(ctx context.Context, from, to string) error
	// List counts the objects below a prefix, Delete deletes them all.
	List   func(ctx context.Context, prefix string) (int, error)
	Delete func(ctx context.Context, prefix string) error
	// SignGet and SignPut make a URL for whoever has no key.
	SignGet, SignPut func(ctx context.Context, key string) (string, error)
	// GoOn works for the time given, with one process or object of the client; nil is Put and Get in turns.
	GoOn func(ctx context.Context, length time.Duration) error
}

// Run does everything that the client can, one after another, and writes a line for each: the operation, "ok" or
// "failed", and what there is to say, with tabs in between. It goes on after a failure.
func Run(ctx context.Context, out io.Writer, p Parameters, c Client) {
	t := tester{Client: c, p: p}
	for _, step := range t.steps() {
		if !step.able {
			continue
		}
		started := time.Now()
		err := step.try(ctx)
		if outlived(err) {
			err = step.try(ctx)
		}
		Tell(out, step.name, time.Since(started), err)
	}
}

// outlived tells whether a request, or a signed URL, came to the gateway after the end of its key. SDKs for Go use a key
// to its announced end, a few seconds before the true one: for keys of half a minute a busy machine can be slower than
// that. A client that never takes a new key is refused again.
func outlived(err error) bool { return err != nil && strings.Contains(err.Error(), "ExpiredToken") }

// Tell writes the line of an operation.
func Tell(out io.Writer, name string, took time.Duration, err error) {
	verdict, text := "ok", took.Round(time.Millisecond).String()
	if err != nil {
		verdict, text = "failed", strings.Join(strings.Fields(err.Error()), " ")
	}
	fmt.Fprintf(out, "%s\t%s\t%s\n", name, verdict, text) //nolint:errcheck // there is nobody else to tell
}
