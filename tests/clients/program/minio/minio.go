// Package minio is minio-go with the web identity of the environment.
package minio

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/deckhouse/system-s3/tests/clients/program/trial"
)

type sdk struct {
	*minio.Client

	bucket string
}

// New is minio-go as a client of the matrix.
func New(p trial.Parameters) (trial.Client, error) {
	client, err := connect()
	if err != nil {
		return trial.Client{}, err
	}
	s := &sdk{Client: client, bucket: p.Bucket}
	return trial.Client{
		Put: s.put, Get: s.get, Range: s.ranged, PutParts: s.parts, Copy: s.copy,
		List: s.count, Delete: s.remove, SignGet: s.signGet, SignPut: s.signPut,
	}, nil
}

// connect is what a program with minio-go writes: the library reads none of the variables by itself.
func connect() (*minio.Client, error) {
	transport, err := trial.Transport()
	if err != nil {
		return nil, err
	}
	endpoint, err := url.Parse(os.Getenv("AWS_ENDPOINT_URL_S3"))
	if err != nil {
		return nil, fmt.Errorf("read the endpoint: %w", err)
	}
	key := credentials.New(&credentials.STSWebIdentity{
		Client:      &http.Client{Transport: transport},
		STSEndpoint: os.Getenv("AWS_ENDPOINT_URL_STS"),
		RoleARN:     os.Getenv("AWS_ROLE_ARN"),
		GetWebIDTokenExpiry: func() (*credentials.WebIdentityToken, error) {
			token, err := os.ReadFile(os.Getenv("AWS_WEB_IDENTITY_TOKEN_FILE")) //nolint:gosec // the connection ConfigMap names the file
			return &credentials.WebIdentityToken{Token: string(token)}, err
		},
	})
	client, err := minio.New(endpoint.Host, &minio.Options{
		Creds: key, Secure: true, Transport: transport, Region: os.Getenv("AWS_REGION"),
	})
	if err != nil {
		return nil, fmt.Errorf("make the client: %w", err)
	}
	return client, nil
}

func (s *sdk) put(ctx context.Context, key string, body []byte) error {
	_, err := s.PutObject(ctx, s.bucket, key, bytes.NewReader(body), int64(len(body)), minio.PutObjectOptions{})
	return err
}

// parts leaves the size unsaid; minio-go sends what is larger than a part in parts then.
func (s *sdk) parts(ctx context.Context, key string, body []byte) error {
	const partSize = 8 << 20
	_, err := s.PutObject(ctx, s.bucket, key, bytes.NewReader(body), int64(len(body)), minio.PutObjectOptions{PartSize: partSize})
	return err
}

func (s *sdk) get(ctx context.Context, key string) ([]byte, error) {
	return s.read(ctx, key, minio.GetObjectOptions{})
}

func (s *sdk) ranged(ctx context.Context, key string, offset, length int) ([]byte, error) {
	o := minio.GetObjectOptions{}
	if err := o.SetRange(int64(offset), int64(offset+length-1)); err != nil {
		return nil, err
	}
	return s.read(ctx, key, o)
}

func (s *sdk) read(ctx context.Context, key string, o minio.GetObjectOptions) ([]byte, error) {
	object, err := s.GetObject(ctx, s.bucket, key, o)
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(object)
	return content, errors.Join(err, object.Close())
}

func (s *sdk) copy(ctx context.Context, from, to string) error {
	_, err := s.CopyObject(ctx, minio.CopyDestOptions{Bucket: s.bucket, Object: to}, minio.CopySrcOptions{Bucket: s.bucket, Object: from})
	return err
}

func (s *sdk) count(ctx context.Context, prefix string) (int, error) {
	count := 0
	for object := range s.ListObjects(ctx, s.bucket, minio.ListObjectsOptions{Prefix: prefix, Recursive: true}) {
		if object.Err != nil {
			return count, object.Err
		}
		count++
	}
	return count, nil
}

func (s *sdk) remove(ctx context.Context, prefix string) error {
	objects := s.ListObjects(ctx, s.bucket, minio.ListObjectsOptions{Prefix: prefix, Recursive: true})
	var failed error
	for result := range s.RemoveObjects(ctx, s.bucket, objects, minio.RemoveObjectsOptions{}) {
		failed = errors.Join(failed, result.Err)
	}
	return failed
}

func (s *sdk) signGet(ctx context.Context, key string) (string, error) {
	signed, err := s.PresignedGetObject(ctx, s.bucket, key, time.Minute, nil)
	if err != nil {
		return "", err
	}
	return signed.String(), nil
}

func (s *sdk) signPut(ctx context.Context, key string) (string, error) {
	signed, err := s.PresignedPutObject(ctx, s.bucket, key, time.Minute)
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(signed.String()), nil
}
