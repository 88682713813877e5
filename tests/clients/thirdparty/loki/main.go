// Command loki is Loki's own S3 client, which its chunks, its index and its rules go through, with the settings of
// storage_config.aws.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/deckhouse/system-s3/tests/clients/program/trial"
	"github.com/grafana/loki/v3/pkg/storage/chunk/client/aws"
	"github.com/grafana/loki/v3/pkg/storage/chunk/client/hedging"
)

type store struct {
	*aws.S3ObjectClient
}

func main() { trial.Main(open) }

func open(p trial.Parameters) (trial.Client, error) {
	var (
		configuration aws.S3Config
		hedge         hedging.Config
		flags         flag.FlagSet
	)
	configuration.RegisterFlags(&flags) // the defaults
	configuration.BucketNames = p.Bucket
	configuration.HTTPConfig.CAFile = os.Getenv("AWS_CA_BUNDLE")
	client, err := aws.NewS3ObjectClient(configuration, hedge)
	if err != nil {
		return trial.Client{}, fmt.Errorf("make Loki's client: %w", err)
	}
	s := store{client}
	return trial.Client{Put: s.put, Get: s.get, Range: s.ranged, PutParts: s.put, List: s.count, Delete: s.remove}, nil
}

func (s store) put(ctx context.Context, key string, body []byte) error {
	return s.PutObject(ctx, key, bytes.NewReader(body))
}

func (s store) get(ctx context.Context, key string) ([]byte, error) {
	body, _, err := s.GetObject(ctx, key)
	return read(body, err)
}

func (s store) ranged(ctx context.Context, key string, offset, length int) ([]byte, error) {
	return read(s.GetObjectRange(ctx, key, int64(offset), int64(length)))
}

func read(from io.ReadCloser, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(from)
	return content, errors.Join(err, from.Close())
}

func (s store) count(ctx context.Context, prefix string) (int, error) {
	objects, _, err := s.List(ctx, prefix, "")
	return len(objects), err
}

func (s store) remove(ctx context.Context, prefix string) error {
	objects, _, err := s.List(ctx, prefix, "")
	if err != nil {
		return err
	}
	for _, object := range objects {
		if err := s.DeleteObject(ctx, object.Key); err != nil {
			return err
		}
	}
	return nil
}
