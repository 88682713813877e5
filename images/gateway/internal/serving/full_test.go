package serving

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/images/gateway/internal/volume"
	"github.com/deckhouse/system-s3/lib/access"
	"github.com/deckhouse/system-s3/lib/garage/garagetest"
)

const mib = 1 << 20

// disk is an XFS file system on a loop device, as small as a volume of its own. It needs root.
type disk struct {
	image, device, mount string
}

func run(t testing.TB, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(context.WithoutCancel(t.Context()), name, args...).CombinedOutput()
	require.NoError(t, err, "%s %s (this test needs root and xfsprogs): %s", name, strings.Join(args, " "), out)
	return strings.TrimSpace(string(out))
}

// putOnDisk moves a node, which is down, to a volume of its own.
func putOnDisk(t testing.TB, node *garagetest.Node, size int64) *disk {
	t.Helper()
	d := &disk{image: filepath.Join(t.TempDir(), "image"), mount: node.Dir}
	require.NoError(t, os.WriteFile(d.image, nil, 0o600))
	require.NoError(t, os.Truncate(d.image, size))
	d.device = run(t, "losetup", "--find", "--show", d.image)
	t.Cleanup(func() { run(t, "losetup", "--detach", d.device) })
	run(t, "mkfs.xfs", "-q", d.device)
	old := node.Dir + ".old"
	require.NoError(t, os.Rename(node.Dir, old))
	require.NoError(t, os.Mkdir(node.Dir, 0o700))
	run(t, "mount", d.device, d.mount)
	t.Cleanup(func() { run(t, "umount", d.mount) })
	run(t, "cp", "-a", old+"/.", d.mount)
	return d
}

func (d *disk) grow(t testing.TB, size int64) {
	t.Helper()
	require.NoError(t, os.Truncate(d.image, size))
	run(t, "losetup", "--set-capacity", d.device)
	run(t, "xfs_growfs", d.mount)
}

// shrink takes what is left above the reserve, as anything else on the volume may: from then on the guard is closed.
func (d *disk) shrink(t testing.TB) {
	t.Helper()
	space := d.space(t)
	size := max(int64(space.Free)-int64(space.Reserve()), 0) + mib
	run(t, "fallocate", "--length", strconv.FormatInt(size, 10), filepath.Join(d.mount, "else"))
}

func (d *disk) space(t testing.TB) volume.Space {
	t.Helper()
	space, err := volume.Measure(d.mount)
	require.NoError(t, err)
	return space
}

// onDisks moves a cluster to volumes of these sizes.
func onDisks(t testing.TB, cluster *garagetest.Cluster, sizes ...int64) []*disk {
	t.Helper()
	http.DefaultClient.CloseIdleConnections() // Garage waits for them
	disks := make([]*disk, len(sizes))
	for i, node := range cluster.Nodes {
		node.Stop()
		disks[i] = putOnDisk(t, node, sizes[i])
		node.Start(t)
	}
	for i := range cluster.Nodes { // nodes that lost each other wait longer and longer before they try again
		require.Eventually(t, func() bool {
			health, err := cluster.ClientOf(i).GetClusterHealth(t.Context())
			return err == nil && health.Healthy()
		}, time.Minute, waitTick, "the node is back")
	}
	return disks
}

func requireHealthy(t testing.TB, cluster *garagetest.Cluster, ordinal int) {
	t.Helper()
	health, err := cluster.ClientOf(ordinal).GetClusterHealth(t.Context())
	require.NoError(t, err, "Garage lives")
	require.True(t, health.Healthy())
}

// filler uploads objects that do not compress until it is refused for want of room.
type filler struct {
	t      *testing.T
	client *s3.Client
	size   int

	mu      sync.Mutex
	written []string
}

func (f *filler) put(key string) error {
	data := make([]byte, f.size)
	if _, err := rand.Read(data); err != nil {
		return err
	}
	_, err := f.client.PutObject(f.t.Context(), &s3.PutObjectInput{Bucket: aws.String(testBucket), Key: &key, Body: bytes.NewReader(data)})
	if err == nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.written = append(f.written, key)
	}
	return err
}

// fill uploads so many at once until every one of them is refused. On a machine that is busy an upload may fail for
// another reason: a client that is cut off while it sends does not always get to read why.
func (f *filler) fill(parallel int) {
	f.t.Helper()
	const patience = 20
	errs := make(chan error, parallel)
	for worker := range parallel {
		go func() {
			var err error
			for i, others := 0, 0; others < patience; i++ {
				if err = f.put(fmt.Sprintf("of-%d-by-%d-%d", f.size, worker, i)); isFull(err) {
					break
				}
				if err != nil {
					others++
				}
			}
			errs <- err
		}()
	}
	for range parallel {
		requireCode(f.t, <-errs, "InsufficientStorage")
	}
}

func isFull(err error) bool {
	var failure smithy.APIError
	return errors.As(err, &failure) && failure.ErrorCode() == "InsufficientStorage"
}

func TestAFullVolumeRefusesWritesAndNothingElse(t *testing.T) {
	const size, grown = 600 * mib, 1200 * mib
	cluster := garagetest.Start(t, 1)
	cluster.CreateBucket(t, testBucket)
	disk := onDisks(t, cluster, size)[0]
	r := newRig(t, cluster, func(c *Config) { c.VolumeDir = disk.mount })
	client := r.s3(r.key(testBucket, access.ReadWrite), noRetry)
	upload, err := client.CreateMultipartUpload(t.Context(), &s3.CreateMultipartUploadInput{Bucket: aws.String(testBucket), Key: aws.String("parts")})
	require.NoError(t, err)
	large := &filler{t: t, client: client, size: 20 * mib}
	large.fill(12)
	small := &filler{t: t, client: client, size: mib}
	small.fill(12)
	space := disk.space(t)
	t.Logf("full: %d objects, %d of %d MiB free, %d kept", len(large.written)+len(small.written), space.Free/mib, space.Total/mib, space.Reserve()/mib)
	require.Greater(t, space.Free, space.Reserve()*9/10, "parallel uploads overshoot little")
	require.Less(t, space.Free, space.Reserve()+8*mib, "small objects were let in up to the reserve")

	disk.shrink(t)
	err = small.put("one more")
	require.Contains(t, requireCode(t, err, "InsufficientStorage").ErrorMessage(), "The store is full")
	var failure interface{ HTTPStatusCode() int }
	require.ErrorAs(t, err, &failure)
	require.Equal(t, http.StatusInsufficientStorage, failure.HTTPStatusCode())
	_, told := r.push(http.MethodGet, "/gateway/v1/volume", cluster.AdminToken, "")
	require.Contains(t, told, `"refusing":true`)
	for _, key := range large.written {
		require.Len(t, get(t, client, key), 20*mib, "everything acknowledged is readable")
	}
	for _, key := range large.written[1:] {
		_, err := client.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: aws.String(testBucket), Key: &key})
		require.NoError(t, err)
	}
	_, err = client.AbortMultipartUpload(t.Context(), &s3.AbortMultipartUploadInput{Bucket: aws.String(testBucket), Key: aws.String("parts"), UploadId: upload.UploadId})
	require.NoError(t, err)
	requireHealthy(t, cluster, 0)

	requireCode(t, small.put("one more"), "InsufficientStorage")
	disk.grow(t, grown)
	require.NoError(t, small.put("one more"), "after growth writes go on by themselves")
	require.Equal(t, http.StatusOK, r.admin("/readyz", "").StatusCode)
}

// newRigs starts a gateway for every node of the cluster; they find each other by the hosts of their nodes.
func newRigs(t *testing.T, cluster *garagetest.Cluster, disks []*disk) []*rig {
	t.Helper()
	var known sync.Map // admin URLs by host
	var rigs []*rig
	for i, node := range cluster.Nodes {
		rigs = append(rigs, newRig(t, cluster, func(c *Config) {
			if i > 0 {
				rigs[0].ca.write(t, c.TLSDir)
			}
			c.VolumeDir, c.GarageS3, c.GarageAdmin = disks[i].mount, node.S3URL(), node.AdminURL()
			c.PeerURL = func(host string) string {
				address, _ := known.Load(host)
				return fmt.Sprint("https://", address)
			}
		}))
		rigs[i].ca = rigs[0].ca
		host, err := url.Parse(node.AdminURL())
		require.NoError(t, err)
		known.Store(host.Hostname(), rigs[i].server.AdminAddress())
	}
	return rigs
}

func TestTheFullestOfThreeReplicasHoldsBackAll(t *testing.T) {
	cluster := garagetest.Start(t, 3)
	cluster.CreateBucket(t, testBucket)
	disks := onDisks(t, cluster, 900*mib, 600*mib, 900*mib)
	rigs := newRigs(t, cluster, disks)
	var filling sync.WaitGroup
	fillers := make([]*filler, len(rigs))
	for i, r := range rigs {
		fillers[i] = &filler{t: t, client: r.s3(r.key(testBucket, access.ReadWrite), noRetry), size: 4*mib + i}
		eventually(t, "each replica takes a first one", func() bool { return fillers[i].put(fmt.Sprint("first-", i)) == nil })
	}
	for i := range rigs {
		filling.Go(func() { fillers[i].fill(1) })
	}
	filling.Wait()
	disks[1].shrink(t)
	for i, r := range rigs {
		eventually(t, "refused also where there is room", func() bool { return isFull(fillers[i].put("one more")) })
		require.NotEmpty(t, fillers[i].written)
		require.Len(t, get(t, fillers[i].client, fillers[i].written[0]), fillers[i].size)
		_, err := fillers[i].client.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: aws.String(testBucket), Key: &fillers[i].written[0]})
		require.NoError(t, err)
		space := disks[i].space(t)
		t.Logf("replica %d: %d of %d MiB free, %d kept", i, space.Free/mib, space.Total/mib, space.Reserve()/mib)
		require.Greater(t, space.Free, space.Reserve()/2)
		requireHealthy(t, r.cluster, i)
	}
	disks[1].grow(t, 1200*mib)
	for i := range rigs { // as soon as Garage has told of it
		require.Eventually(t, func() bool { return fillers[i].put(fmt.Sprint("after-", i)) == nil }, time.Minute, time.Second)
	}
}
