package mover_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// doer is what the SDK sends requests by.
type doer func(*http.Request) (*http.Response, error)

// Do implements s3.HTTPClient.
func (d doer) Do(r *http.Request) (*http.Response, error) { return d(r) }

// sniff shows the answer's header as it came.
func sniff(header *http.Header) func(*s3.Options) {
	return func(o *s3.Options) {
		inner := o.HTTPClient
		o.HTTPClient = doer(func(r *http.Request) (*http.Response, error) {
			response, err := inner.Do(r)
			if err == nil {
				*header = response.Header.Clone()
			}
			return response, err
		})
	}
}

// spoiling is a client through which answers about a key come with a flipped bit, the first so many of them.
func spoiling(client *s3.Client, key string, times int64) *s3.Client {
	var left atomic.Int64
	left.Store(times)
	return s3.New(client.Options(), func(o *s3.Options) {
		inner := o.HTTPClient
		o.HTTPClient = doer(func(r *http.Request) (*http.Response, error) {
			response, err := inner.Do(r)
			if err != nil || r.Method != http.MethodGet || !strings.HasSuffix(r.URL.Path, "/"+key) || response.StatusCode >= http.StatusBadRequest || left.Add(-1) < 0 {
				return response, err
			}
			data, err := io.ReadAll(response.Body)
			if err != nil {
				return nil, err
			}
			data[len(data)/2] ^= 1
			response.Body = io.NopCloser(bytes.NewReader(data))
			return response, nil
		})
	})
}
