package mover_test

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/images/controller/internal/mover"
)

func singleKeys(t *testing.T, r *rig) {
	bucket := r.bucket(t)
	r.source.put(bucket, "small", random(10), nil)
	r.source.put(bucket, "large", random(2*mib), nil)
	r.source.putParts(bucket, "parted", [][]byte{random(5 * mib), random(3)}, nil)
	r.target.put(bucket, "gone", []byte("x"), nil)
	r.target.put(bucket, "not named", []byte("x"), nil)
	keys := named(bucket, "small", "large", "parted", "gone", "never was", "small")
	require.NoError(t, r.mover.Settle(t.Context(), keys))
	r.target.remove(bucket, "not named")
	r.requireEqual(t, bucket)

	r.target.put(bucket, "small", []byte("y"), nil)
	r.source.remove(bucket, "large")
	r.source.put(bucket, "parted", []byte("z"), nil)
	require.NoError(t, r.mover.Settle(t.Context(), keys))
	r.requireEqual(t, bucket)
}

func named(bucket string, keys ...string) []mover.Key {
	all := make([]mover.Key, 0, len(keys))
	for _, key := range keys {
		all = append(all, mover.Key{Bucket: bucket, Key: key})
	}
	return all
}

func uploads(t *testing.T, r *rig) {
	bucket, key := r.bucket(t), "an upload/я %+"
	begin := func(s *store) *string {
		out, err := s.s3.CreateMultipartUpload(t.Context(), &s3.CreateMultipartUploadInput{Bucket: &bucket, Key: &key}, plain)
		require.NoError(t, err)
		_, err = s.s3.UploadPart(t.Context(), &s3.UploadPartInput{
			Bucket: &bucket, Key: &key, UploadId: out.UploadId, PartNumber: aws.Int32(1), Body: bytes.NewReader(random(10)),
		}, plain)
		require.NoError(t, err)
		return out.UploadId
	}
	id := begin(r.source)
	begin(r.target)
	found, err := r.mover.Uploads(t.Context(), bucket)
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.Equal(t, mover.Upload{Bucket: bucket, Key: key, ID: *id, Initiated: found[0].Initiated}, found[0])
	require.WithinDuration(t, time.Now(), found[0].Initiated, time.Minute)

	require.Zero(t, r.pass(t, bucket).Objects)
	left, err := r.target.s3.ListMultipartUploads(t.Context(), &s3.ListMultipartUploadsInput{Bucket: &bucket})
	require.NoError(t, err)
	require.Empty(t, left.Uploads, "what another process had begun at the target is ended")

	require.NoError(t, r.mover.AbortUploads(t.Context(), found))
	require.NoError(t, r.mover.AbortUploads(t.Context(), found), "gone is gone")
	found, err = r.mover.Uploads(t.Context(), bucket)
	require.NoError(t, err)
	require.Empty(t, found)
}

func slowly(t *testing.T, r *rig) {
	bucket := r.bucket(t)
	for i := range 4 {
		r.source.put(bucket, fmt.Sprint(i), random(mib/2), nil)
	}
	slow := r.newMover()
	slow.BytesPerSecond = mib
	begun := time.Now()
	_, err := slow.Pass(t.Context(), bucket)
	require.NoError(t, err)
	_, err = slow.Verify(t.Context(), bucket)
	require.NoError(t, err)
	require.Greater(t, time.Since(begun), 3500*time.Millisecond, "two times 2 MiB at 1 MiB/s")
	require.EqualValues(t, 2*mib, slow.Progress.CopiedBytes.Load())
	require.EqualValues(t, 2*mib, slow.Progress.VerifiedBytes.Load())
}

// Clients overwrite and delete while everything is copied; the keys they touched are settled, as the journal tells them.
func TestWhatChangesWhileItIsCopiedIsFollowed(t *testing.T) {
	r := newRig(t)
	bucket := r.bucket(t)
	key := func(i int) string { return fmt.Sprintf("key-%03d", i) }
	const count = 300
	for i := range count {
		r.source.put(bucket, key(i), random(20_000), nil)
	}
	r.source.putParts(bucket, "parted", [][]byte{random(5 * mib), random(5 * mib), random(5 * mib)}, nil)
	ctx, stop := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	for c := range 3 {
		clients.Go(func() {
			for i := c; ctx.Err() == nil; i += 7 {
				switch i % 3 {
				case 0:
					r.source.remove(bucket, key(i%count))
				default:
					r.source.put(bucket, key(i%count), random(i%40_000), nil)
				}
			}
		})
	}
	clients.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			r.source.putParts(bucket, "parted", [][]byte{random(5 * mib), random(5*mib + i), random(1 + i)}, nil)
		}
	})
	_, err := r.mover.Pass(t.Context(), bucket)
	require.NoError(t, err)
	_, err = r.mover.Verify(t.Context(), bucket)
	require.NoError(t, err, "what differs because it changed is no mismatch")
	stop()
	clients.Wait()
	keys := named(bucket, "parted")
	for i := range count {
		keys = append(keys, mover.Key{Bucket: bucket, Key: key(i)})
	}
	require.NoError(t, r.mover.Settle(t.Context(), keys))
	r.requireEqual(t, bucket)
	left, err := r.target.s3.ListMultipartUploads(t.Context(), &s3.ListMultipartUploadsInput{Bucket: &bucket})
	require.NoError(t, err)
	require.Empty(t, left.Uploads, "copies that came too late have left no uploads")
}

// A disk that gives back other data than it was given is found, and mended from the source.
func TestAFlippedBitIsFound(t *testing.T) {
	r := newRig(t)
	bucket := r.bucket(t)
	whole, part := random(100_000), random(5*mib)
	r.source.put(bucket, "whole", whole, nil)
	r.source.putParts(bucket, "parted", [][]byte{random(5 * mib), part}, nil)
	r.pass(t, bucket)
	require.Zero(t, r.verify(t, bucket).Mended)

	for name, data := range map[string][]byte{"whole": whole, "a block of a part": part[2*mib : 3*mib]} {
		flip(t, filepath.Join(r.target.cluster.Nodes[0].Dir, "data"), data)
		result := r.verify(t, bucket)
		require.EqualValues(t, 1, result.Mended, name)
		require.EqualValues(t, 2, result.Objects)
		r.requireEqual(t, bucket)
		require.Zero(t, r.verify(t, bucket).Mended, name)
	}
}

// flip changes a bit in the middle of the block's file, which holds what cannot be compressed as it is.
func flip(t *testing.T, dir string, block []byte) {
	t.Helper()
	flipped := 0
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		at := bytes.Index(data, block[len(block)/2:len(block)/2+64])
		if err != nil || at < 0 {
			return err
		}
		flipped++
		data[at+32] ^= 1
		return os.WriteFile(path, data, 0o600)
	})
	require.NoError(t, err)
	require.Equal(t, 1, flipped, "the block is on the disk")
}

func TestAnObjectThatDoesNotComeBackIsNamed(t *testing.T) {
	r := newRig(t)
	bucket := r.bucket(t)
	r.source.put(bucket, "good", random(10_000), nil)
	r.source.put(bucket, "bad", random(10_000), nil)
	r.pass(t, bucket)

	r.mover.Target.S3 = spoiling(r.target.s3, "bad", 1)
	result := r.verify(t, bucket)
	require.EqualValues(t, 1, result.Mended, "a fault that passes")

	r.mover.Target.S3 = spoiling(r.target.s3, "bad", math.MaxInt64)
	_, err := r.mover.Verify(t.Context(), bucket)
	require.ErrorIs(t, err, mover.ErrMismatch)
	require.ErrorContains(t, err, bucket+"/bad")
	require.ErrorIs(t, r.mover.Settle(t.Context(), named(bucket, "bad")), mover.ErrMismatch)
	require.NoError(t, r.mover.Settle(t.Context(), named(bucket, "good")))

	r.mover = r.newMover()
	r.mover.Source.S3 = spoiling(r.source.s3, "good", math.MaxInt64)
	_, err = r.mover.Pass(t.Context(), bucket)
	require.ErrorContains(t, err, bucket+"/good", "what the source itself gives wrong is not copied")
	require.NotErrorIs(t, err, mover.ErrMismatch)
	require.Equal(t, r.source.etags(bucket), r.target.etags(bucket))
}

// The process that copies ends in the middle, and so does the target; the next pass goes on.
func TestAPassThatEndsInTheMiddleIsGoneOnWith(t *testing.T) {
	r := newRig(t)
	bucket := r.bucket(t)
	const count = 500
	for i := range count {
		r.source.put(bucket, fmt.Sprintf("key-%03d", i), random(10_000), nil)
	}
	r.source.putParts(bucket, "large", [][]byte{random(20 * mib), random(20 * mib)}, nil)

	ctx, crash := context.WithCancel(t.Context())
	defer crash()
	interrupt(t, r, func(p *mover.Progress) bool { return p.Copied.Load() > count/5 }, crash)
	_, err := r.mover.Pass(ctx, bucket)
	require.ErrorIs(t, err, context.Canceled)
	require.Less(t, len(r.target.etags(bucket)), count)

	r.mover = r.newMover()
	node := r.target.cluster.Nodes[0]
	killed := interrupt(t, r, func(p *mover.Progress) bool { return p.Copied.Load() > count/5 }, node.Kill)
	_, err = r.mover.Pass(t.Context(), bucket)
	require.ErrorContains(t, err, bucket+"/")
	require.NotErrorIs(t, err, mover.ErrMismatch, "a target that is away gives nothing wrong back")
	_, err = r.mover.Verify(t.Context(), bucket)
	require.Error(t, err)
	require.NotErrorIs(t, err, mover.ErrMismatch)
	<-killed
	node.Start(t)

	r.mover = r.newMover()
	require.Eventually(t, func() bool {
		_, err := r.mover.Pass(t.Context(), bucket)
		return err == nil
	}, time.Minute, time.Second, "the pass goes through once the target is back")
	require.EqualValues(t, count+1, r.verify(t, bucket).Objects)
	r.requireEqual(t, bucket)
}

// interrupt does something when the mover has come so far.
func interrupt(t *testing.T, r *rig, far func(*mover.Progress) bool, do func()) (done chan struct{}) {
	t.Helper()
	done = make(chan struct{})
	progress := r.mover.Progress
	go func() {
		defer close(done)
		ticker := time.NewTicker(time.Millisecond)
		defer ticker.Stop()
		for !far(progress) && t.Context().Err() == nil {
			<-ticker.C
		}
		do()
	}()
	return done
}
