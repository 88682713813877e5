package mover

import (
	"bytes"
	"context"
	"crypto/md5" //nolint:gosec // what ETags are made of
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// maxHeld is the size of objects that are held in memory while they are copied, in bytes; larger ones are passed on as
// they come.
const maxHeld = 1 << 20

// version is what the source had when it was read.
type version struct {
	etag string // empty when the object is gone
	size int64
}

func (v version) isGone() bool { return v.etag == "" }

// follow makes the target's object what the source's is, and tells what that was. A hint that the object is parted
// saves reading it for nothing.
func (m *Mover) follow(ctx context.Context, key Key, parted bool) (version, error) {
	defer m.locks.lock(key)()
	return m.followLocked(ctx, key, parted)
}

const maxChases = 10 // of an object that is overwritten time and again

func (m *Mover) followLocked(ctx context.Context, key Key, parted bool) (now version, err error) {
	for range maxChases {
		err = again(ctx, func() error {
			now, err = m.followOnce(ctx, key, parted)
			return err
		})
		if !errors.Is(err, errOtherVersion) {
			break
		}
		parted = !parted // what it is now is told by the next attempt
	}
	if err != nil {
		return version{}, fmt.Errorf("copy %s: %w", key, err)
	}
	return now, nil
}

func (m *Mover) followOnce(ctx context.Context, key Key, parted bool) (version, error) {
	if parted {
		return m.copyParted(ctx, key)
	}
	out, err := m.Source.S3.GetObject(ctx, &s3.GetObjectInput{Bucket: &key.Bucket, Key: &key.Key, ChecksumMode: types.ChecksumModeEnabled})
	if isCode(err, "NoSuchKey") {
		return version{}, m.remove(ctx, key)
	}
	if err != nil {
		return version{}, fmt.Errorf("read the source: %w", err)
	}
	defer out.Body.Close() //nolint:errcheck // all that matters was read
	now := version{etag: strings.Trim(aws.ToString(out.ETag), `"`), size: aws.ToInt64(out.ContentLength)}
	if isParted(now.etag) {
		return version{}, errOtherVersion
	}
	kept := attributesOf(out.ResultMetadata)
	body := m.flow(ctx, out.Body, &m.Progress.CopiedBytes)
	if now.size <= maxHeld {
		err = m.putHeld(ctx, key, now, kept, body)
	} else {
		err = m.putStream(ctx, key, now, kept, body)
	}
	if err == nil {
		m.Progress.Copied.Add(1)
	}
	return now, err
}

// remove deletes an object that the source has no more.
func (m *Mover) remove(ctx context.Context, key Key) error {
	if _, err := m.Target.S3.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &key.Bucket, Key: &key.Key}); err != nil {
		return fmt.Errorf("delete at the target: %w", err)
	}
	m.Progress.Deleted.Add(1)
	return nil
}

func (m *Mover) putHeld(ctx context.Context, key Key, now version, kept attributes, body *flow) error {
	data := make([]byte, now.size)
	if _, err := io.ReadFull(body, data); err != nil {
		return fmt.Errorf("read the source: %w", err)
	}
	if digest := md5.Sum(data); hex.EncodeToString(digest[:]) != now.etag { //nolint:gosec // what ETags are made of
		return fmt.Errorf("read the source: %w", errSpoiled)
	}
	return m.put(ctx, key, now, bytes.NewReader(data), kept.asWhole)
}

// putStream leaves it to the target to compare the data with the digest.
func (m *Mover) putStream(ctx context.Context, key Key, now version, kept attributes, body *flow) error {
	release, err := m.stream(ctx)
	if err != nil {
		return err
	}
	defer release()
	return m.put(ctx, key, now, body, kept.asWhole, once)
}

func (m *Mover) put(ctx context.Context, key Key, now version, body io.Reader, options ...func(*s3.Options)) error {
	digest, err := contentMD5(now.etag)
	if err != nil {
		return fmt.Errorf("read the source: its ETag %s is no digest: %w", now.etag, err)
	}
	_, err = m.Target.S3.PutObject(ctx, &s3.PutObjectInput{
		Bucket: &key.Bucket, Key: &key.Key, Body: body, ContentLength: &now.size, ContentMD5: &digest,
	}, append(options, noChecksum)...)
	if err != nil {
		return fmt.Errorf("write the target: %w", err)
	}
	return nil
}

// noChecksum keeps the SDK from giving an object a checksum that it has not at the source.
func noChecksum(o *s3.Options) {
	o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
}

// stream waits for a place among the transfers that are not held in memory; the result gives it back.
func (m *Mover) stream(ctx context.Context) (release func(), err error) {
	select {
	case m.streams <- struct{}{}:
		return func() { <-m.streams }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
