// Command client is a consumer of a bucket written in Go: it knows nothing of system-s3, only the default configuration
// of the AWS SDK, which reads the environment.
//
// Without flags it stores an object, reads it back and compares. With -for it goes on doing so for that time, and tells
// how many operations succeeded and with how many keys.
package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

var (
	errNoBucket  = errors.New("BUCKET_NAME is not set")
	errDifferent = errors.New("what was read is not what was stored")
)

// options of a run.
type options struct {
	length   time.Duration
	interval time.Duration
	patience time.Duration
	size     int
	prefix   string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var o options
	flag.DurationVar(&o.length, "for", 0, "keep storing and reading for so long")
	flag.DurationVar(&o.interval, "interval", 200*time.Millisecond, "pause between two rounds")
	flag.DurationVar(&o.patience, "patience", 0, "how long a round may be tried again after an error that the SDK gave up on")
	flag.IntVar(&o.size, "size", 1<<20, "size of an object in bytes")
	flag.StringVar(&o.prefix, "prefix", "go/", "prefix of the objects' keys")
	flag.Parse()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1) //nolint:gocritic // nothing is left to undo
	}
}

func run(ctx context.Context, o options) error {
	bucket := os.Getenv("BUCKET_NAME")
	if bucket == "" {
		return errNoBucket
	}
	loaded, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return fmt.Errorf("load the SDK's default configuration: %w", err)
	}
	w := worker{s3: s3.NewFromConfig(loaded, withHost), credentials: loaded.Credentials, bucket: bucket, options: o}
	if o.length == 0 {
		return w.once(ctx)
	}
	return w.repeat(ctx)
}

// worker stores objects and reads them back.
type worker struct {
	s3          *s3.Client
	credentials aws.CredentialsProvider
	bucket      string
	options     options

	keys map[string]bool
}

// once is the shortest useful program.
func (w *worker) once(ctx context.Context) error {
	key := w.options.prefix + "object"
	if err := w.round(ctx, key); err != nil {
		return err
	}
	tellf("stored %s (%d bytes), read it back, and it is the same", key, w.options.size)
	return nil
}

// round stores an object of random bytes and reads it back.
func (w *worker) round(ctx context.Context, key string) error {
	content := make([]byte, w.options.size)
	_, _ = rand.Read(content) // never fails
	_, err := w.s3.PutObject(ctx, &s3.PutObjectInput{Bucket: &w.bucket, Key: &key, Body: bytes.NewReader(content)})
	if err != nil {
		return fmt.Errorf("store %s: %w", key, err)
	}
	got, err := w.s3.GetObject(ctx, &s3.GetObjectInput{Bucket: &w.bucket, Key: &key})
	if err != nil {
		return fmt.Errorf("read %s: %w", key, err)
	}
	read, err := io.ReadAll(got.Body)
	if err := errors.Join(err, got.Body.Close()); err != nil {
		return fmt.Errorf("read %s: %w", key, err)
	}
	if !bytes.Equal(content, read) {
		return fmt.Errorf("%s: %w", key, errDifferent)
	}
	return nil
}

// repeat goes on for the length asked for. Every object that was stored is read again at the end: nothing that was
// acknowledged may be lost.
func (w *worker) repeat(ctx context.Context) error {
	w.keys = map[string]bool{}
	end := time.Now().Add(w.options.length)
	rounds, troubles := 0, 0
	for ticker := time.NewTicker(w.options.interval); time.Now().Before(end); rounds++ {
		failed, err := w.patientRound(ctx, fmt.Sprintf("%s%06d", w.options.prefix, rounds))
		if err != nil {
			ticker.Stop()
			return err
		}
		troubles += failed
		w.noteKey(ctx)
		select {
		case <-ticker.C:
		case <-ctx.Done():
			ticker.Stop()
			return ctx.Err()
		}
	}
	if err := w.recheck(ctx, rounds); err != nil {
		return err
	}
	tellf("finished: %d rounds, %d of them tried again, %d keys", rounds, troubles, len(w.keys))
	return nil
}

// patientRound tries a round again until patience ends and returns how often it had to.
func (w *worker) patientRound(ctx context.Context, key string) (int, error) {
	deadline := time.Now().Add(w.options.patience)
	for failed := 0; ; failed++ {
		err := w.round(ctx, key)
		if err == nil {
			return failed, nil
		}
		tellf("%s round %s: %v", time.Now().UTC().Format(time.RFC3339), key, err)
		if ctx.Err() != nil || errors.Is(err, errDifferent) || !time.Now().Before(deadline) {
			return failed, err
		}
		timer := time.NewTimer(time.Second)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
	}
}

// noteKey counts the keys in use. The id of a key is no secret.
func (w *worker) noteKey(ctx context.Context) {
	key, err := w.credentials.Retrieve(ctx)
	if err != nil || w.keys[key.AccessKeyID] {
		return
	}
	w.keys[key.AccessKeyID] = true
	tellf("key %d, until %s", len(w.keys), key.Expires.UTC().Format(time.RFC3339))
}

// recheck reads the size of every object that was stored.
func (w *worker) recheck(ctx context.Context, rounds int) error {
	pages := s3.NewListObjectsV2Paginator(w.s3, &s3.ListObjectsV2Input{Bucket: &w.bucket, Prefix: &w.options.prefix})
	found := 0
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return fmt.Errorf("list: %w", err)
		}
		for _, object := range page.Contents {
			if aws.ToInt64(object.Size) != int64(w.options.size) {
				return fmt.Errorf("%s: %w", aws.ToString(object.Key), errDifferent)
			}
			found++
		}
	}
	if found < rounds {
		return fmt.Errorf("%d objects of %d are there: %w", found, rounds, errDifferent)
	}
	return nil
}

// tellf writes a line for whoever reads the Pod's log.
func tellf(format string, args ...any) {
	fmt.Fprintf(os.Stdout, format+"\n", args...) //nolint:errcheck // there is nobody else to tell
}
