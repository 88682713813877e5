package tool

import (
	"bytes"
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/deckhouse/system-s3/tests/clients/program/trial"
)

type rclone struct {
	command

	bucket string
}

// rcloneSettings are all the settings that rclone needs: the rest is in the environment that the SDK below it reads.
func rcloneSettings() []string {
	return []string{
		"RCLONE_CONFIG=", // none
		"RCLONE_CONFIG_S3_TYPE=s3", "RCLONE_CONFIG_S3_PROVIDER=Other", "RCLONE_CONFIG_S3_ENV_AUTH=true",
		"RCLONE_S3_NO_CHECK_BUCKET=true",
	}
}

// Rclone is rclone with the authentication of the environment.
func Rclone(p trial.Parameters) trial.Client {
	r := rclone{command: command{name: "/rclone", env: rcloneSettings()}, bucket: p.Bucket}
	return trial.Client{
		Put: r.put, Get: r.get, Range: r.ranged, PutParts: r.put, Copy: r.copy,
		List: r.count, Delete: r.remove, SignGet: r.signGet, GoOn: r.goOn,
	}
}

func (r rclone) path(key string) string { return "s3:" + r.bucket + "/" + key }

func (r rclone) put(ctx context.Context, key string, body []byte) error {
	_, err := r.run(ctx, bytes.NewReader(body), "rcat", r.path(key))
	return err
}

func (r rclone) get(ctx context.Context, key string) ([]byte, error) {
	return r.run(ctx, nil, "cat", r.path(key))
}

func (r rclone) ranged(ctx context.Context, key string, offset, length int) ([]byte, error) {
	return r.run(ctx, nil, "cat", "--offset", strconv.Itoa(offset), "--count", strconv.Itoa(length), r.path(key))
}

func (r rclone) copy(ctx context.Context, from, to string) error {
	return r.do(ctx, "copyto", r.path(from), r.path(to))
}

func (r rclone) count(ctx context.Context, prefix string) (int, error) {
	found, err := r.run(ctx, nil, "lsf", "-R", "--files-only", "--fast-list", r.path(prefix))
	if err != nil && strings.Contains(err.Error(), "directory not found") {
		return 0, nil // how rclone tells that nothing is there
	}
	return lines(found), err
}

func (r rclone) remove(ctx context.Context, prefix string) error {
	return r.do(ctx, "delete", "--checkers", "16", r.path(prefix))
}

func (r rclone) signGet(ctx context.Context, key string) (string, error) {
	signed, err := r.run(ctx, nil, "link", "--expire", "1m", r.path(key))
	return strings.TrimSpace(string(signed)), err
}

func (r rclone) goOn(ctx context.Context, length time.Duration) error {
	content := newSlowly(ctx, length)
	const key = "rclone/slow"
	if _, err := r.run(ctx, content, "rcat", r.path(key)); err != nil {
		return err
	}
	got, err := r.get(ctx, key)
	if err != nil {
		return err
	}
	return content.sameAs(got)
}
