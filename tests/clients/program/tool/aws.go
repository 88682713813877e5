package tool

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/deckhouse/system-s3/tests/clients/program/trial"
)

type awsCLI struct {
	command

	bucket string
}

// AWS is the AWS CLI.
func AWS(p trial.Parameters) trial.Client {
	a := awsCLI{command: command{name: "/usr/bin/aws"}, bucket: p.Bucket}
	return trial.Client{
		Put: a.put, Get: a.get, Range: a.ranged, PutParts: a.put, Copy: a.copy,
		List: a.count, Delete: a.remove, SignGet: a.signGet, GoOn: a.goOn,
	}
}

func (a awsCLI) url(key string) string { return "s3://" + a.bucket + "/" + key }

func (a awsCLI) put(ctx context.Context, key string, body []byte) error {
	_, err := a.run(ctx, bytes.NewReader(body), "s3", "cp", "-", a.url(key))
	return err
}

func (a awsCLI) get(ctx context.Context, key string) ([]byte, error) {
	return a.run(ctx, nil, "s3", "cp", a.url(key), "-")
}

func (a awsCLI) ranged(ctx context.Context, key string, offset, length int) ([]byte, error) {
	const file = "/tmp/range"
	err := a.do(ctx, "s3api", "get-object", "--bucket", a.bucket, "--key", key,
		"--range", fmt.Sprintf("bytes=%d-%d", offset, offset+length-1), file)
	if err != nil {
		return nil, err
	}
	return os.ReadFile(file)
}

func (a awsCLI) copy(ctx context.Context, from, to string) error {
	return a.do(ctx, "s3", "cp", a.url(from), a.url(to))
}

func (a awsCLI) count(ctx context.Context, prefix string) (int, error) {
	found, err := a.run(ctx, nil, "s3api", "list-objects-v2", "--bucket", a.bucket, "--prefix", prefix,
		"--query", "Contents[].[Key]", "--output", "text")
	if strings.TrimSpace(string(found)) == "None" {
		return 0, err
	}
	return lines(found), err
}

func (a awsCLI) remove(ctx context.Context, prefix string) error {
	return a.do(ctx, "s3", "rm", "--recursive", "--quiet", a.url(prefix))
}

func (a awsCLI) signGet(ctx context.Context, key string) (string, error) {
	signed, err := a.run(ctx, nil, "s3", "presign", a.url(key))
	return strings.TrimSpace(string(signed)), err
}

func (a awsCLI) goOn(ctx context.Context, length time.Duration) error {
	content := newSlowly(ctx, length)
	const key = "awscli/slow"
	if _, err := a.run(ctx, content, "s3", "cp", "-", a.url(key)); err != nil {
		return err
	}
	got, err := a.get(ctx, key)
	if err != nil {
		return err
	}
	return content.sameAs(got)
}
