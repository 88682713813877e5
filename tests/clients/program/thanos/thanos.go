// Package thanos is the object store of Thanos, which Mimir and Loki use too, configured with the endpoint and the
// authentication of the environment.
package thanos

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"

	"github.com/go-kit/log"
	"github.com/thanos-io/objstore"
	"github.com/thanos-io/objstore/providers/s3"

	"github.com/deckhouse/system-s3/tests/clients/program/trial"
)

type store struct {
	bucket *s3.Bucket
}

// New is the object store as a client of the matrix. SSL_CERT_FILE is what its configuration cannot say: the CA of its
// HTTP settings does not hold for STS.
func New(p trial.Parameters) (trial.Client, error) {
	endpoint, err := url.Parse(os.Getenv("AWS_ENDPOINT_URL_S3"))
	if err != nil {
		return trial.Client{}, fmt.Errorf("read the endpoint: %w", err)
	}
	configuration := fmt.Sprintf("bucket: %s\nendpoint: %s\nregion: %s\naws_sdk_auth: true\npart_size: 8388608\nhttp_config: {tls_config: {ca_file: %s}}\n",
		p.Bucket, endpoint.Host, os.Getenv("AWS_REGION"), os.Getenv("AWS_CA_BUNDLE"))
	bucket, err := s3.NewBucket(log.NewNopLogger(), []byte(configuration), "clients", nil)
	if err != nil {
		return trial.Client{}, fmt.Errorf("make the store: %w", err)
	}
	s := store{bucket: bucket}
	return trial.Client{Put: s.put, Get: s.get, Range: s.ranged, PutParts: s.put, List: s.count, Delete: s.remove}, nil
}

func (s store) put(ctx context.Context, key string, body []byte) error {
	return s.bucket.Upload(ctx, key, bytes.NewReader(body))
}

func read(from io.ReadCloser, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(from)
	return content, errors.Join(err, from.Close())
}

func (s store) get(ctx context.Context, key string) ([]byte, error) {
	return read(s.bucket.Get(ctx, key))
}

func (s store) ranged(ctx context.Context, key string, offset, length int) ([]byte, error) {
	return read(s.bucket.GetRange(ctx, key, int64(offset), int64(length)))
}

func (s store) count(ctx context.Context, prefix string) (int, error) {
	count := 0
	err := s.bucket.Iter(ctx, prefix, func(string) error {
		count++
		return nil
	}, objstore.WithRecursiveIter())
	return count, err
}

func (s store) remove(ctx context.Context, prefix string) error {
	return s.bucket.Iter(ctx, prefix, func(key string) error { return s.bucket.Delete(ctx, key) }, objstore.WithRecursiveIter())
}
