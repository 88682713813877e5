package tool

import (
	"bytes"
	"context"
	"io"
	"time"

	"github.com/deckhouse/system-s3/tests/clients/program/trial"
)

type restic struct {
	command
}

// call tells restic how to start rclone: its default names an option of a remote that the matrix's rclone has not.
func (r restic) call(ctx context.Context, stdin io.Reader, args ...string) ([]byte, error) {
	return r.run(ctx, stdin, append(args, "--option", "rclone.args=serve restic --stdio")...)
}

// Restic is restic on rclone: restic's own S3 backend cannot be told where STS is.
func Restic(ctx context.Context, p trial.Parameters) (trial.Client, error) {
	r := restic{command{name: "/restic", env: append(rcloneSettings(),
		"RESTIC_REPOSITORY=rclone:s3:"+p.Bucket+"/"+p.Prefix+"repository", "RESTIC_PASSWORD=x", "RESTIC_CACHE_DIR=/tmp/restic", "PATH=/")}}
	if _, err := r.call(ctx, nil, "init"); err != nil {
		return trial.Client{}, err
	}
	return trial.Client{Put: r.put, Get: r.get, PutParts: r.put, GoOn: r.goOn}, nil
}

func (r restic) put(ctx context.Context, key string, body []byte) error {
	_, err := r.call(ctx, bytes.NewReader(body), "backup", "--stdin", "--stdin-filename", key)
	return err
}

// get reads what the last backup has stored.
func (r restic) get(ctx context.Context, key string) ([]byte, error) {
	return r.call(ctx, nil, "dump", "latest", "/"+key)
}

func (r restic) goOn(ctx context.Context, length time.Duration) error {
	content := newSlowly(ctx, length)
	if _, err := r.call(ctx, content, "backup", "--stdin", "--stdin-filename", "slow"); err != nil {
		return err
	}
	got, err := r.get(ctx, "slow")
	if err != nil {
		return err
	}
	return content.sameAs(got)
}
