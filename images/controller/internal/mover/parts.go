package mover

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"golang.org/x/sync/errgroup"
)

// abortTimeout bounds the abort of an upload that failed, which happens when the context may have ended.
const abortTimeout = 10 * time.Second

// parted is an object that goes to the target part by part, with the parts it has.
type parted struct {
	key       Key
	version   version
	upload    string
	algorithm types.ChecksumAlgorithm // empty when it has no checksum
}

// copyParted copies an object with the boundaries of its parts, which its ETag depends on.
func (m *Mover) copyParted(ctx context.Context, key Key) (version, error) {
	head, err := m.Source.S3.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &key.Bucket, Key: &key.Key, ChecksumMode: types.ChecksumModeEnabled})
	if err != nil {
		// A HEAD cannot tell a missing object from a missing bucket; the way of other objects can.
		return version{}, errors.Join(errOtherVersion, fmt.Errorf("look at the source: %w", err))
	}
	now := version{etag: strings.Trim(aws.ToString(head.ETag), `"`), size: aws.ToInt64(head.ContentLength)}
	if !isParted(now.etag) {
		return version{}, errOtherVersion
	}
	kept := attributesOf(head.ResultMetadata)
	algorithm, kind := kept.checksum()
	begun, err := m.Target.S3.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{
		Bucket: &key.Bucket, Key: &key.Key, ChecksumAlgorithm: types.ChecksumAlgorithm(algorithm), ChecksumType: types.ChecksumType(kind),
	}, kept.asParted, noChecksum)
	if err != nil {
		return version{}, fmt.Errorf("begin the upload to the target: %w", err)
	}
	p := parted{key: key, version: now, upload: aws.ToString(begun.UploadId), algorithm: types.ChecksumAlgorithm(algorithm)}
	defer m.uploads.add(p.upload)()
	if err := m.fill(ctx, p); err != nil {
		m.giveUp(ctx, p)
		return version{}, err
	}
	m.Progress.Copied.Add(1)
	return now, nil
}

func (m *Mover) giveUp(ctx context.Context, p parted) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortTimeout)
	defer cancel()
	// What stays is aborted by the next pass.
	if err := abort(ctx, m.Target, Upload{Bucket: p.key.Bucket, Key: p.key.Key, ID: p.upload}); err != nil {
		m.Log.V(1).Info("An upload to the target stays behind", "object", p.key.String(), "error", err.Error())
	}
}

// fill uploads all parts and completes the upload when they are what the source's ETag is made of.
func (m *Mover) fill(ctx context.Context, p parted) error {
	count := partsOf(p.version.etag)
	digests, completed := make([]string, count), make([]types.CompletedPart, count)
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(maxStreams)
	for i := range count {
		group.Go(func() error {
			number := int32(i + 1) //nolint:gosec // at most 10 000
			return again(groupCtx, func() error {
				digest, err := m.copyPart(groupCtx, p, number)
				digests[i], completed[i] = digest, types.CompletedPart{PartNumber: &number, ETag: &digest}
				return err
			})
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if made := composite(digests); made != p.version.etag {
		return fmt.Errorf("the parts that the target got make the ETag %s, not %s: %w", made, p.version.etag, errSpoiled)
	}
	out, err := m.Target.S3.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{
		Bucket: &p.key.Bucket, Key: &p.key.Key, UploadId: &p.upload, MultipartUpload: &types.CompletedMultipartUpload{Parts: completed},
	})
	if err != nil {
		return fmt.Errorf("complete the upload to the target: %w", err)
	}
	if made := strings.Trim(aws.ToString(out.ETag), `"`); made != p.version.etag {
		return fmt.Errorf("the target made the ETag %s, not %s: %w", made, p.version.etag, errSpoiled)
	}
	return nil
}

// copyPart passes a part on and tells the MD5 of what the target got.
func (m *Mover) copyPart(ctx context.Context, p parted, number int32) (digest string, err error) {
	release, err := m.stream(ctx)
	if err != nil {
		return "", err
	}
	defer release()
	part, err := m.Source.S3.GetObject(ctx, &s3.GetObjectInput{
		Bucket: &p.key.Bucket, Key: &p.key.Key, PartNumber: &number, IfMatch: quoted(p.version.etag),
	})
	if err != nil {
		return "", fmt.Errorf("read part %d of the source: %w", number, asVersion(err))
	}
	defer part.Body.Close() //nolint:errcheck // all that matters was read
	body := m.flow(ctx, part.Body, &m.Progress.CopiedBytes)
	out, err := m.Target.S3.UploadPart(ctx, &s3.UploadPartInput{
		Bucket: &p.key.Bucket, Key: &p.key.Key, UploadId: &p.upload, PartNumber: &number,
		Body: body, ContentLength: part.ContentLength, ChecksumAlgorithm: p.algorithm,
	}, noChecksum, once)
	if err != nil {
		return "", fmt.Errorf("write part %d to the target: %w", number, err)
	}
	return strings.Trim(aws.ToString(out.ETag), `"`), nil
}

func quoted(etag string) *string { return aws.String(`"` + etag + `"`) }
