package mover

import (
	"context"
	"crypto/md5" //nolint:gosec // what ETags are made of
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// settle makes the target's object what the source's is and reads it back. What does not come back is copied once more.
func (m *Mover) settle(ctx context.Context, key Key, parted bool) error {
	defer m.locks.lock(key)()
	var trouble error
	for range 2 {
		now, err := m.followLocked(ctx, key, parted)
		if err != nil {
			return err
		}
		if now.isGone() {
			trouble = m.gone(ctx, key)
		} else {
			trouble = m.readBack(ctx, key, now.etag)
		}
		if trouble == nil {
			return nil
		}
		parted = isParted(now.etag)
	}
	if isSpoiled(trouble) {
		return fmt.Errorf("%s: %w: %w", key, ErrMismatch, trouble)
	}
	return fmt.Errorf("read %s back: %w", key, trouble)
}

func (m *Mover) gone(ctx context.Context, key Key) error {
	_, err := m.Target.S3.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &key.Bucket, Key: &key.Key})
	answer := (*smithyhttp.ResponseError)(nil)
	switch {
	case err == nil:
		return errors.Join(errSpoiled, errors.New("a deleted object is still there"))
	case errors.As(err, &answer) && answer.HTTPStatusCode() == http.StatusNotFound:
		return nil
	}
	return err
}

// readBack reads an object from the target and compares it with its ETag. An error wraps errOtherVersion when the
// target has no such version.
func (m *Mover) readBack(ctx context.Context, key Key, etag string) error {
	count := partsOf(etag)
	if count == 0 {
		digest, err := m.digest(ctx, key, etag, nil)
		if err == nil && digest != etag {
			return errSpoiled
		}
		return err
	}
	digests := make([]string, count)
	for i := range digests {
		var err error
		if digests[i], err = m.digest(ctx, key, etag, aws.Int32(int32(i+1))); err != nil {
			return err
		}
	}
	if composite(digests) != etag {
		return errSpoiled
	}
	return nil
}

// digest is the MD5 of an object or of one of its parts, as the target gives it.
func (m *Mover) digest(ctx context.Context, key Key, etag string, part *int32) (digest string, err error) {
	err = again(ctx, func() error {
		out, err := m.Target.S3.GetObject(ctx, &s3.GetObjectInput{Bucket: &key.Bucket, Key: &key.Key, PartNumber: part, IfMatch: quoted(etag)})
		if err != nil {
			return asVersion(err)
		}
		defer out.Body.Close() //nolint:errcheck // all that matters was read
		read := md5.New()      //nolint:gosec // what ETags are made of
		if _, err := io.Copy(read, m.flow(ctx, out.Body, &m.Progress.VerifiedBytes)); err != nil {
			return err
		}
		digest = hex.EncodeToString(read.Sum(nil))
		return nil
	})
	return digest, err
}
