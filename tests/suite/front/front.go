// Package front stands between the peer's suite and the store, in tests only. The suite makes buckets through S3 and
// signs everything with one root key; here a bucket is a SystemBucket and every key is of one bucket. The front makes
// the buckets, gives each request the name and a key of its bucket, signs it again in the form in which it was signed,
// and gives names back in the answers. It judges nothing: what is signed wrongly goes on signed wrongly.
package front

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// The root key that the suite signs with.
const (
	RootID     = "AKIASUITEROOT0000000"
	RootSecret = "the-root-key-of-the-suite-means-nothing-outside" //nolint:gosec // it opens nothing
)

// assumed is the name that the suite gives a bucket when it does not matter whether it is there.
const assumed = "bucket"

// account is the owner of all buckets, whom the suite takes to be its root key.
const account = "000000000000"

// Bucket is a bucket of the store.
type Bucket struct {
	Name   string // in S3
	Handle string // the store's own name for it, if it has one
	Keys   aws.CredentialsProvider
}

// Store is where buckets are made.
type Store interface {
	// Create makes a bucket that can be used at once.
	Create(ctx context.Context) (Bucket, error)
	// Delete deletes it with all that is in it; it may still go on when Delete returns.
	Delete(ctx context.Context, bucket Bucket) error
}

// Front is the handler that the suite speaks to, path-style.
type Front struct {
	Store     Store
	Endpoint  *url.URL // of the store: scheme and host
	Transport http.RoundTripper
	// Trace, if any, gets a line for each request and answer.
	Trace io.Writer

	mu      sync.Mutex
	buckets map[string]Bucket // by the suite's name
	spare   *Bucket           // whose key opens no bucket that the suite knows
}

// Open makes what the front needs before it can serve.
func (f *Front) Open(ctx context.Context) error {
	spare, err := f.Store.Create(ctx)
	if err != nil {
		return fmt.Errorf("make the bucket for requests to buckets that are not there: %w", err)
	}
	f.spare, f.buckets = &spare, map[string]Bucket{assumed: spare}
	return nil
}

// Close deletes the buckets that are left.
func (f *Front) Close(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var errs []error
	for name, bucket := range f.buckets {
		errs = append(errs, f.Store.Delete(ctx, bucket))
		delete(f.buckets, name)
	}
	return errors.Join(errs...)
}

// ServeHTTP answers the suite.
func (f *Front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, rest := splitPath(r.RequestURI)
	if rest == "" || rest == "/" {
		switch {
		case r.Method == http.MethodPut && f.makes(r, name):
			f.create(w, r, name)
			return
		case r.Method == http.MethodDelete && r.URL.RawQuery == "x-id=DeleteBucket" || r.Method == http.MethodDelete && r.URL.RawQuery == "":
			f.remove(w, r, name)
			return
		}
	}
	if err := f.forward(w, r, name); err != nil {
		http.Error(w, "the test's front: "+err.Error(), http.StatusBadGateway)
	}
}

// makes tells whether a request is for a new bucket such as can be had here: private, without Object Lock or tags.
func (f *Front) makes(r *http.Request, name string) bool {
	if r.URL.RawQuery != "" && r.URL.RawQuery != "x-id=CreateBucket" || r.ContentLength > 0 || name == "" {
		return false
	}
	lock, ownership := r.Header.Get("X-Amz-Bucket-Object-Lock-Enabled"), r.Header.Get("X-Amz-Object-Ownership")
	if lock != "" && lock != "false" || ownership != "" && ownership != "BucketOwnerEnforced" || r.Header.Get("X-Amz-Acl") != "" {
		return false
	}
	_, there := f.find(name)
	return !there
}

func (f *Front) find(name string) (Bucket, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	bucket, there := f.buckets[name]
	return bucket, there
}

func (f *Front) create(w http.ResponseWriter, r *http.Request, name string) {
	bucket, err := f.Store.Create(r.Context())
	if err != nil {
		http.Error(w, "the test's front: "+err.Error(), http.StatusBadGateway)
		return
	}
	f.mu.Lock()
	f.buckets[name] = bucket
	f.mu.Unlock()
	w.Header().Set("Location", "/"+name)
}

func (f *Front) remove(w http.ResponseWriter, r *http.Request, name string) {
	f.mu.Lock()
	bucket, there := f.buckets[name]
	delete(f.buckets, name)
	f.mu.Unlock()
	if !there {
		http.Error(w, "<Error><Code>NoSuchBucket</Code></Error>", http.StatusNotFound)
		return
	}
	if err := f.Store.Delete(context.WithoutCancel(r.Context()), bucket); err != nil {
		http.Error(w, "the test's front: "+err.Error(), http.StatusBadGateway)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// forward passes a request on, translated, and its answer back.
func (f *Front) forward(w http.ResponseWriter, r *http.Request, name string) error {
	bucket, known := f.find(name)
	if !known {
		bucket = Bucket{Name: name, Keys: f.spare.Keys}
	}
	key, err := bucket.Keys.Retrieve(r.Context())
	if err != nil {
		return fmt.Errorf("get a key: %w", err)
	}
	t := translation{front: f, given: r, bucket: bucket, suiteName: name, key: key}
	request, err := t.request()
	if err != nil {
		return err
	}
	response, err := f.Transport.RoundTrip(request)
	if err != nil {
		return fmt.Errorf("ask the store: %w", err)
	}
	defer response.Body.Close() //nolint:errcheck // read to its end or broken
	return t.answer(w, response)
}

// answer copies an answer; documents name the bucket and the key as the suite knows them.
func (t *translation) answer(w http.ResponseWriter, response *http.Response) error {
	back := strings.NewReplacer(
		t.front.Endpoint.String()+"/", "http://"+t.given.Host+"/", t.bucket.Name, t.suiteName, t.key.AccessKeyID, RootID,
		"<ID>"+account+"</ID>", "<ID>"+RootID+"</ID>",
	)
	for name, values := range response.Header {
		for _, value := range values {
			w.Header().Add(name, back.Replace(value))
		}
	}
	var body io.Reader = response.Body
	if strings.Contains(response.Header.Get("Content-Type"), "xml") && t.given.Method != http.MethodHead {
		data, err := io.ReadAll(response.Body)
		if err != nil {
			return fmt.Errorf("read the answer: %w", err)
		}
		data = []byte(back.Replace(string(data)))
		w.Header().Set("Content-Length", strconv.Itoa(len(data)))
		body = bytes.NewReader(data)
		t.trace(response.StatusCode, data)
	} else {
		t.trace(response.StatusCode, nil)
	}
	w.WriteHeader(response.StatusCode)
	_, _ = io.Copy(w, body) // whoever breaks off tells the suite
	return nil
}

func (t *translation) trace(status int, document []byte) {
	if t.front.Trace == nil {
		return
	}
	const shown = 600
	fmt.Fprintf(t.front.Trace, "%s %s -> %d %.*s\n", t.given.Method, t.given.RequestURI, status, shown, document) //nolint:errcheck // for people
}

// splitPath cuts the bucket off a path as it was sent.
func splitPath(uri string) (bucket, rest string) {
	path, _, _ := strings.Cut(uri, "?")
	path = strings.TrimPrefix(path, "/")
	if i := strings.IndexByte(path, '/'); i >= 0 {
		return path[:i], path[i:]
	}
	return path, ""
}
