package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhouse/system-s3/lib/api/v1alpha1"
	"github.com/deckhouse/system-s3/tests/demo/stage"
)

const (
	objectSize  = 4 << 10
	folder      = 1000 // objects
	deleteLimit = time.Hour
)

var errSlow = errors.New("the deletion of a SystemBucket takes longer than rclone purge")

// deletion fills two buckets alike, lets rclone purge one and deletes the SystemBucket of the other.
func deletion(ctx context.Context, g *ground, o options) error {
	took := map[string]time.Duration{}
	for _, way := range []struct {
		name string
		do   func(context.Context, *ground, filled) error
	}{
		{"rclone purge", func(ctx context.Context, g *ground, f filled) error { return purge(ctx, g, f, o.rclone) }},
		{"SystemBucket", remove},
	} {
		f, err := fill(ctx, g, "full", o.objects)
		if err != nil {
			return err
		}
		begun := time.Now()
		if err := way.do(ctx, g, f); err != nil {
			return fmt.Errorf("%s: %w", way.name, err)
		}
		took[way.name] = time.Since(begun)
		_, _ = fmt.Fprintf(os.Stdout, "%-14s %d objects of 4 KiB in %.1f s, %.0f/s\n", way.name, o.objects, took[way.name].Seconds(), float64(o.objects)/took[way.name].Seconds())
		if err := remove(ctx, g, f); err != nil { // rclone has emptied it, but the bucket is there
			return err
		}
	}
	if took["SystemBucket"] > took["rclone purge"] {
		return errSlow
	}
	return nil
}

// filled is a bucket with objects.
type filled struct {
	key  client.ObjectKey
	name string // in S3
	keys aws.CredentialsProvider
}

func fill(ctx context.Context, g *ground, name string, objects int) (filled, error) {
	f := filled{key: client.ObjectKey{Namespace: namespace, Name: name}}
	if err := g.Bucket(ctx, f.key, "2Gi"); err != nil {
		return f, fmt.Errorf("make the SystemBucket: %w", err)
	}
	if err := g.AwaitBucket(ctx, f.key, storeLimit); err != nil {
		return f, fmt.Errorf("wait for the SystemBucket: %w", err)
	}
	sb, _, err := g.ReadBucket(ctx, f.key)
	if err != nil {
		return f, fmt.Errorf("read the SystemBucket: %w", err)
	}
	f.name = sb.Status.BucketName
	if f.keys, err = g.keys(ctx, name); err != nil {
		return f, err
	}
	begun, s3Client := time.Now(), g.s3(f.keys)
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(connections)
	for n := range objects {
		group.Go(func() error { return put(groupCtx, s3Client, f.name, n) })
	}
	if err := group.Wait(); err != nil {
		return f, fmt.Errorf("fill the bucket: %w", err)
	}
	g.Sayf("%d objects written in %.0f s", objects, time.Since(begun).Seconds())
	return f, nil
}

func put(ctx context.Context, c *s3.Client, bucket string, n int) error {
	content := make([]byte, objectSize)
	for i := range content {
		content[i] = byte(rand.Uint32()) //nolint:gosec // content that nothing can compress, not a secret
	}
	key := fmt.Sprintf("folder-%04d/object-%08d", n/folder, n)
	_, err := c.PutObject(ctx, &s3.PutObjectInput{Bucket: &bucket, Key: &key, Body: bytes.NewReader(content)})
	if err != nil {
		return fmt.Errorf("put %s: %w", key, err)
	}
	return nil
}

// purge lets rclone delete everything in the bucket, with what it does by default.
func purge(ctx context.Context, g *ground, f filled, program string) error {
	keys, err := f.keys.Retrieve(ctx)
	if err != nil {
		return fmt.Errorf("get keys: %w", err)
	}
	cmd := exec.CommandContext(ctx, program, "purge", "s3:"+f.name+"/", "--no-check-certificate", "--stats", "10s", "--stats-one-line", "-v", "--stats-log-level", "NOTICE") //nolint:gosec // the caller chooses
	cmd.Env = append(os.Environ(),
		"RCLONE_CONFIG=", "RCLONE_CONFIG_S3_TYPE=s3", "RCLONE_CONFIG_S3_PROVIDER=Other", "RCLONE_CONFIG_S3_ENV_AUTH=true",
		"RCLONE_CONFIG_S3_ENDPOINT=https://"+g.gateway, "RCLONE_S3_FORCE_PATH_STYLE=true",
		"AWS_ACCESS_KEY_ID="+keys.AccessKeyID, "AWS_SECRET_ACCESS_KEY="+keys.SecretAccessKey, "AWS_SESSION_TOKEN="+keys.SessionToken,
		"AWS_REGION=us-east-1", "RCLONE_LOG_FILE="+filepath.Join(os.TempDir(), "scale-rclone-"+strconv.Itoa(os.Getpid())+".log"),
	)
	out, err := cmd.CombinedOutput()
	left, listErr := g.s3(f.keys).ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: &f.name, MaxKeys: aws.Int32(1)})
	if listErr != nil {
		return fmt.Errorf("look what is left: %w", listErr)
	}
	if len(left.Contents) > 0 {
		return fmt.Errorf("objects are left: %w: %s", err, out)
	}
	return nil // it cannot remove the bucket itself, which is ours
}

// remove deletes the SystemBucket and waits until it is gone, telling what its status says.
func remove(ctx context.Context, g *ground, f filled) error {
	sb := &v1alpha1.SystemBucket{}
	sb.Namespace, sb.Name = f.key.Namespace, f.key.Name
	if err := client.IgnoreNotFound(g.Admin.Delete(ctx, sb)); err != nil {
		return fmt.Errorf("delete the SystemBucket: %w", err)
	}
	err := g.Await(ctx, stage.Wish{What: "the SystemBucket to go", Limit: deleteLimit, Look: func(ctx context.Context) (bool, string, error) {
		_, ready, err := g.ReadBucket(ctx, f.key)
		if apierrors.IsNotFound(err) {
			return true, "", nil
		}
		return false, ready.Message, err
	}})
	if err != nil {
		return fmt.Errorf("wait for the deletion: %w", err)
	}
	return nil
}
