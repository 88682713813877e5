package mover

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// Upload is a multipart upload that nobody has completed or aborted.
type Upload struct {
	Bucket, Key, ID string
	Initiated       time.Time
}

// Uploads lists the source's unfinished multipart uploads.
func (m *Mover) Uploads(ctx context.Context, bucket string) ([]Upload, error) {
	return uploadsOf(ctx, m.Source, bucket)
}

// AbortUploads ends unfinished multipart uploads of the source. One that is gone is no error.
func (m *Mover) AbortUploads(ctx context.Context, uploads []Upload) error {
	var failures []error
	for _, upload := range uploads {
		if err := abort(ctx, m.Source, upload); err != nil {
			failures = append(failures, err)
		}
	}
	return errors.Join(failures...)
}

func uploadsOf(ctx context.Context, side Side, bucket string) ([]Upload, error) {
	var found []Upload
	input := &s3.ListMultipartUploadsInput{Bucket: &bucket, EncodingType: types.EncodingTypeUrl}
	for {
		out, err := side.S3.ListMultipartUploads(ctx, input)
		if err != nil {
			return nil, fmt.Errorf("list the unfinished uploads of bucket %s: %w", bucket, err)
		}
		for _, upload := range out.Uploads {
			key, err := url.PathUnescape(aws.ToString(upload.Key))
			if err != nil {
				return nil, fmt.Errorf("decode the key of an upload to bucket %s: %w", bucket, err)
			}
			found = append(found, Upload{Bucket: bucket, Key: key, ID: aws.ToString(upload.UploadId), Initiated: aws.ToTime(upload.Initiated)})
		}
		if !aws.ToBool(out.IsTruncated) {
			return found, nil
		}
		next, err := url.PathUnescape(aws.ToString(out.NextKeyMarker))
		if err != nil {
			return nil, fmt.Errorf("decode the marker of the uploads to bucket %s: %w", bucket, err)
		}
		input.KeyMarker, input.UploadIdMarker = &next, out.NextUploadIdMarker
	}
}

func abort(ctx context.Context, side Side, upload Upload) error {
	_, err := side.S3.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: &upload.Bucket, Key: &upload.Key, UploadId: &upload.ID})
	if err != nil && !isCode(err, "NoSuchUpload") {
		return fmt.Errorf("abort an upload of %s/%s: %w", upload.Bucket, upload.Key, err)
	}
	return nil
}

// abortLeftovers ends what a process that died had begun to upload to the target.
func (m *Mover) abortLeftovers(ctx context.Context, bucket string) error {
	uploads, err := uploadsOf(ctx, m.Target, bucket)
	if err != nil {
		return fmt.Errorf("the target: %w", err)
	}
	for _, upload := range uploads {
		if m.uploads.has(upload.ID) {
			continue
		}
		if err := abort(ctx, m.Target, upload); err != nil {
			return fmt.Errorf("the target: %w", err)
		}
	}
	return nil
}

// ownUploads are the uploads to the target that are under way. The zero value is ready for use.
type ownUploads struct {
	mu  sync.Mutex
	ids map[string]bool
}

func (o *ownUploads) has(id string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.ids[id]
}

// add notes an upload; the result strikes it out.
func (o *ownUploads) add(id string) (remove func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ids == nil {
		o.ids = map[string]bool{}
	}
	o.ids[id] = true
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.ids, id)
	}
}
