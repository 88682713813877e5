package mover_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/deckhouse/system-s3/lib/names"
)

var (
	smallObjects = flag.Int("small", 100_000, "objects of 4 KiB that the benchmark moves")
	largeObjects = flag.Int("large", 100, "objects of 100 MiB that the benchmark moves")
)

const (
	smallSize, largeSize = 4 << 10, 100 * mib
	// leastRatio is how many times as many small objects per second as rclone, with every object read back.
	leastRatio = 3
	// leastShare of what the disk takes, of large objects. The network between programs of one machine is faster.
	leastShare = 0.9
	// leastMeasured is how many small objects make a verdict.
	leastMeasured = 10_000
)

// BenchmarkMove moves the same objects between the same two stores by rclone and by us, in one run. It needs a machine
// at rest and is run once: -benchtime 1x.
func BenchmarkMove(b *testing.B) {
	rclone := rcloneProgram(b)
	for b.Loop() {
		r := newRig(b)
		if *smallObjects > 0 {
			small(b, r, rclone)
		}
		if *largeObjects > 0 {
			large(b, r, rclone)
		}
	}
}

func small(b *testing.B, r *rig, rclone string) {
	count := *smallObjects
	bucket := r.filled(b, count, smallSize)
	perSecond := func(took time.Duration) float64 { return float64(count) / took.Seconds() }
	plainly := perSecond(r.rclone(b, rclone, bucket, r.bucket(b)))
	tuned := perSecond(r.rclone(b, rclone, bucket, r.bucket(b), "--transfers", "32", "--checkers", "32", "--s3-no-head", "--fast-list"))
	copied, verified := r.move(b, bucket)
	ours := perSecond(copied + verified)
	b.Logf("%d objects of 4 KiB: rclone sync --checksum %.0f/s, tuned and without looking at what it wrote %.0f/s; we %.0f/s with every object read back (copied %.0f/s, read back %.0f/s): ratio %.1f, to the tuned %.1f",
		count, plainly, tuned, ours, perSecond(copied), perSecond(verified), ours/plainly, ours/tuned)
	b.ReportMetric(ours/plainly, "times-rclone")
	if count >= leastMeasured {
		require.GreaterOrEqual(b, ours/plainly, float64(leastRatio), "objects per second, in terms of rclone's")
	}
}

func large(b *testing.B, r *rig, rclone string) {
	count := *largeObjects
	bucket := r.filled(b, count, largeSize)
	perSecond := func(took time.Duration) float64 { return float64(count) * largeSize / mib / took.Seconds() }
	disk := perSecond(writeFiles(b, r.target.cluster.Nodes[0].Dir, count))
	peer := perSecond(r.rclone(b, rclone, bucket, r.bucket(b)))
	copied, verified := r.move(b, bucket)
	b.Logf("%d objects of 100 MiB: the disk takes %.0f MiB/s, rclone sync --checksum %.0f MiB/s; we copy %.0f MiB/s and read back %.0f MiB/s: of the disk %.2f, of rclone %.1f",
		count, disk, peer, perSecond(copied), perSecond(verified), perSecond(copied)/disk, perSecond(copied)/peer)
	b.ReportMetric(perSecond(copied)/disk, "of-the-disk")
	if perSecond(copied)/disk < leastShare {
		b.Logf("missed: %.1f of the disk was the goal", leastShare)
	}
}

// move makes the target's bucket equal, then reads all of it back.
func (r *rig) move(b *testing.B, bucket string) (copied, verified time.Duration) {
	b.Helper()
	m := r.newMover()
	begun := time.Now()
	result, err := m.Pass(b.Context(), bucket)
	require.NoError(b, err)
	require.Equal(b, result.Objects, result.Copied)
	copied = time.Since(begun)
	seen, err := m.Verify(b.Context(), bucket)
	require.NoError(b, err)
	require.Equal(b, result.Objects, seen.Objects)
	require.Zero(b, seen.Mended)
	return copied, time.Since(begun) - copied
}

// filled is a bucket of both sides with objects at the source, in parts when they are large.
func (r *rig) filled(b *testing.B, count, size int) string {
	b.Helper()
	bucket := r.bucket(b)
	group, _ := errgroup.WithContext(context.WithoutCancel(b.Context()))
	group.SetLimit(16)
	if size > mib {
		group.SetLimit(2)
	}
	for i := range count {
		group.Go(func() error {
			key := fmt.Sprintf("folder-%04d/object-%08d", i/1000, i)
			if size <= mib {
				return r.source.tryPut(bucket, key, random(size), nil)
			}
			const part = 10 * mib
			data, parts := random(size), [][]byte{}
			for at := 0; at < size; at += part {
				parts = append(parts, data[at:min(at+part, size)])
			}
			r.source.putParts(bucket, key, parts, nil)
			return nil
		})
	}
	require.NoError(b, group.Wait())
	return bucket
}

// writeFiles is how long the disk takes for as many bytes, in files that are made durable.
func writeFiles(b *testing.B, dir string, count int) time.Duration {
	b.Helper()
	data, begun := random(largeSize), time.Now()
	for i := range count {
		path := filepath.Join(dir, fmt.Sprint("raw-", i))
		file, err := os.Create(path)
		require.NoError(b, err)
		_, err = file.Write(data)
		require.NoError(b, err)
		require.NoError(b, file.Sync())
		require.NoError(b, file.Close())
		defer os.Remove(path)
	}
	return time.Since(begun)
}

// rcloneProgram is RCLONE of the environment, or built from its sources.
func rcloneProgram(b *testing.B) string {
	b.Helper()
	if program := os.Getenv("RCLONE"); program != "" {
		return program
	}
	program := filepath.Join(b.TempDir(), "rclone")
	build := exec.Command("go", "-C", filepath.Join("..", "..", "..", "..", "tests", "clients", "thirdparty", "rclone"), "build", "-o", program, ".")
	out, err := build.CombinedOutput()
	require.NoError(b, err, "build rclone: %s", out)
	return program
}

// rclone syncs a bucket of the source to one of the target and tells how long it took.
func (r *rig) rclone(b *testing.B, program, from, to string, more ...string) time.Duration {
	b.Helper()
	cmd := exec.Command(program, append([]string{"sync", "--checksum", "source:" + from, "target:" + to, "--no-check-certificate"}, more...)...)
	cmd.Env = append(os.Environ(), "RCLONE_CONFIG=")
	for name, s := range map[string]*store{"SOURCE": r.source, "TARGET": r.target} {
		for option, value := range map[string]string{
			"TYPE": "s3", "PROVIDER": "Other", "ENDPOINT": s.url, "REGION": names.GarageRegion, "FORCE_PATH_STYLE": "true",
			"ACCESS_KEY_ID": s.cluster.KeyID, "SECRET_ACCESS_KEY": s.cluster.KeySecret,
		} {
			cmd.Env = append(cmd.Env, "RCLONE_CONFIG_"+name+"_"+option+"="+value)
		}
	}
	begun := time.Now()
	out, err := cmd.CombinedOutput()
	took := time.Since(begun)
	require.NoError(b, err, "rclone: %s", out)
	require.Equal(b, len(r.source.etags(from)), len(r.target.etags(to)), "rclone has copied everything")
	return took
}
