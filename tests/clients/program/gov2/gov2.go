// Package gov2 is the AWS SDK for Go v2 on its default configuration.
package gov2

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/feature/s3/manager"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"golang.org/x/sync/errgroup"

	"github.com/deckhouse/system-s3/tests/clients/program/trial"
)

type sdk struct {
	s3          *s3.Client
	credentials aws.CredentialsProvider
	bucket      string
}

func load(ctx context.Context, bucket string, pathStyle bool, more ...func(*config.LoadOptions) error) (*sdk, error) {
	loaded, err := config.LoadDefaultConfig(ctx, more...)
	if err != nil {
		return nil, fmt.Errorf("load the default configuration: %w", err)
	}
	client := s3.NewFromConfig(loaded, func(o *s3.Options) { o.UsePathStyle = pathStyle })
	return &sdk{s3: client, credentials: loaded.Credentials, bucket: bucket}, nil
}

// New is the SDK as a client of the matrix.
func New(ctx context.Context, p trial.Parameters, pathStyle bool) (trial.Client, error) {
	s, err := load(ctx, p.Bucket, pathStyle)
	if err != nil {
		return trial.Client{}, err
	}
	return trial.Client{
		Put: s.put, Get: s.get, Range: s.ranged, PutParts: s.parts, Copy: s.copy,
		List: s.count, Delete: s.remove, SignGet: s.signGet, SignPut: s.signPut,
	}, nil
}

func (s *sdk) put(ctx context.Context, key string, body []byte) error {
	_, err := s.s3.PutObject(ctx, &s3.PutObjectInput{Bucket: &s.bucket, Key: &key, Body: bytes.NewReader(body)})
	return err
}

func (s *sdk) get(ctx context.Context, key string) ([]byte, error) {
	return s.read(ctx, &s3.GetObjectInput{Bucket: &s.bucket, Key: &key})
}

func (s *sdk) ranged(ctx context.Context, key string, offset, length int) ([]byte, error) {
	return s.read(ctx, &s3.GetObjectInput{
		Bucket: &s.bucket, Key: &key, Range: aws.String(fmt.Sprintf("bytes=%d-%d", offset, offset+length-1)),
	})
}

func (s *sdk) read(ctx context.Context, input *s3.GetObjectInput) ([]byte, error) {
	got, err := s.s3.GetObject(ctx, input)
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(got.Body)
	return content, errors.Join(err, got.Body.Close())
}

func (s *sdk) parts(ctx context.Context, key string, body []byte) error {
	uploader := manager.NewUploader(s.s3)                                                                         //nolint:staticcheck // most consumers still have this uploader
	_, err := uploader.Upload(ctx, &s3.PutObjectInput{Bucket: &s.bucket, Key: &key, Body: bytes.NewReader(body)}) //nolint:staticcheck // see above
	return err
}

func (s *sdk) copy(ctx context.Context, from, to string) error {
	_, err := s.s3.CopyObject(ctx, &s3.CopyObjectInput{Bucket: &s.bucket, Key: &to, CopySource: aws.String(s.bucket + "/" + from)})
	return err
}

func (s *sdk) keys(ctx context.Context, prefix string) ([]string, error) {
	var keys []string
	pages := s3.NewListObjectsV2Paginator(s.s3, &s3.ListObjectsV2Input{Bucket: &s.bucket, Prefix: &prefix})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, object := range page.Contents {
			keys = append(keys, aws.ToString(object.Key))
		}
	}
	return keys, nil
}

func (s *sdk) count(ctx context.Context, prefix string) (int, error) {
	keys, err := s.keys(ctx, prefix)
	return len(keys), err
}

func (s *sdk) remove(ctx context.Context, prefix string) error {
	const most = 1000 // of one request
	keys, err := s.keys(ctx, prefix)
	for len(keys) > 0 && err == nil {
		batch := keys[:min(most, len(keys))]
		keys = keys[len(batch):]
		err = s.removeBatch(ctx, batch)
	}
	return err
}

func (s *sdk) removeBatch(ctx context.Context, keys []string) error {
	objects := make([]types.ObjectIdentifier, 0, len(keys))
	for _, key := range keys {
		objects = append(objects, types.ObjectIdentifier{Key: &key})
	}
	answer, err := s.s3.DeleteObjects(ctx, &s3.DeleteObjectsInput{Bucket: &s.bucket, Delete: &types.Delete{Objects: objects}})
	if err != nil {
		return err
	}
	for _, failed := range answer.Errors {
		return fmt.Errorf("delete %s: %s", aws.ToString(failed.Key), aws.ToString(failed.Code))
	}
	return nil
}

func (s *sdk) signGet(ctx context.Context, key string) (string, error) {
	signed, err := s3.NewPresignClient(s.s3).PresignGetObject(ctx, &s3.GetObjectInput{Bucket: &s.bucket, Key: &key})
	if err != nil {
		return "", err
	}
	return signed.URL, nil
}

func (s *sdk) signPut(ctx context.Context, key string) (string, error) {
	signed, err := s3.NewPresignClient(s.s3).PresignPutObject(ctx, &s3.PutObjectInput{Bucket: &s.bucket, Key: &key})
	if err != nil {
		return "", err
	}
	return signed.URL, nil
}

// patient is for the preparation only: a machine so busy that a request outlives a key of seconds is no finding there.
func patient() aws.Retryer {
	const attempts = 10
	return retry.AddWithErrorCodes(retry.AddWithMaxAttempts(retry.NewStandard(), attempts), "ExpiredToken")
}

// Seed stores what the clients list and delete: p.Listed objects below list/ and p.Many below many/ of each prefix. It
// returns how long a key lives.
func Seed(ctx context.Context, p trial.Parameters, prefixes []string) (time.Duration, error) {
	const parallel = 16
	s, err := load(ctx, p.Bucket, false, config.WithRetryer(patient))
	if err != nil {
		return 0, err
	}
	key, err := s.credentials.Retrieve(ctx)
	if err != nil {
		return 0, fmt.Errorf("get a key: %w", err)
	}
	life := time.Until(key.Expires)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	fill := func(prefix string, count int) {
		for i := range count {
			group.Go(func() error { return s.put(ctx, fmt.Sprintf("%s%05d", prefix, i), []byte(prefix)) })
		}
	}
	fill("list/", p.Listed)
	for _, prefix := range prefixes {
		fill(prefix+"many/", p.Many)
	}
	return life, group.Wait()
}
