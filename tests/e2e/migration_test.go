//go:build placement

package e2e

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhouse/system-s3/lib/names"
	"github.com/deckhouse/system-s3/lib/plan"
	"github.com/deckhouse/system-s3/tests/demo/stage"
	"github.com/deckhouse/system-s3/tests/tour/ground"
	"github.com/deckhouse/system-s3/tests/tour/load"
)

const (
	migrationReady = "MigrationReady"
	migrationLimit = 10 * time.Minute

	// Classes of the sandbox whose volumes can grow and wait for their Pods.
	homeClass, otherHome = "local", "network"

	keptPrefix = "kept/"
	// bulk is what makes copying last for longer than it takes to call it back.
	bulkObjects, bulkBytes = 96, 4 << 20
)

// migrating is the story of a store that goes to another StorageClass while clients work.
type migrating struct {
	placing

	ground *ground.Ground
	client *s3.Client
	bucket string
	kept   map[string]kept // by key
}

// kept is what was acknowledged of an object that nobody changes.
type kept struct{ etag, digest string }

// TestMigration moves a store to another StorageClass and back, calls a move back, and disables the module in the middle
// of one. No request fails while the module is enabled, and whatever was acknowledged is there, byte by byte and by the
// same ETag.
func TestMigration(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	s := &migrating{
		placing: placing{story{ledger: &ledger{}}}, kept: map[string]kept{},
		ground: &ground.Ground{Stage: site, Bucket: mainKey(), Dice: rand.New(rand.NewPCG(seed, 0))},
	}
	tell(t,
		chapter{name: "a store with objects of every kind", play: s.settles, rest: true},
		chapter{name: "to another class", play: func(t *testing.T) { s.moves(t, otherHome, seed) }, rest: true},
		chapter{name: "and back", play: func(t *testing.T) { s.moves(t, homeClass, seed+1) }, rest: true},
		chapter{name: "called back in the middle", play: func(t *testing.T) { s.isCalledBack(t, seed+2) }, rest: true},
		chapter{name: "disabled in the middle", play: s.outlivesTheModule},
		chapter{name: "the store is taken away: other stories know its first plane only", play: s.reset},
	)
}

func (s *migrating) settles(t *testing.T) {
	cast(t, master, master, master)
	s.begins(t, map[string]any{"storageClass": homeClass})
	require.NoError(t, site.Bucket(t.Context(), mainKey(), "2Gi"))
	require.NoError(t, site.AwaitBucket(t.Context(), mainKey(), storeLimit))
	awaitStoreOn(t, homeClass)
	allow(t, "migrating", names.ReadSubresource, names.WriteSubresource)
	d := s.door(t)
	s.client, s.bucket = d.s3(aws.NewCredentialsCache(patient(d.of("migrating", mainBucket, "")))), bucketName(t, mainBucket)
	awaitPut(t, s.client, s.bucket, "first")

	for _, name := range []string{
		"plain", "with space and +plus", "ключ/по-русски", "percent%20%2F", "double//slash/", "..hidden", `quotes"'<&>`, "🙂",
		strings.Repeat("long/", 90) + "end", "query?a=b#c",
	} {
		s.keeps(t, name, []byte("content of "+name))
	}
	s.keeps(t, "empty", nil)
	s.keepsInParts(t, "in parts", 5<<20, 6<<20, 17)
	for n := range bulkObjects {
		s.keeps(t, fmt.Sprintf("bulk/%d", n), s.bytes(bulkBytes))
	}
	s.isKept(t)
}

// bytes are so many that no compression makes fewer.
func (s *migrating) bytes(n int) []byte {
	content := make([]byte, 0, n+8)
	for len(content) < n {
		content = binary.LittleEndian.AppendUint64(content, s.ground.Dice.Uint64())
	}
	return content[:n]
}

func note(etag *string, content []byte) kept {
	sum := sha256.Sum256(content)
	return kept{etag: aws.ToString(etag), digest: hex.EncodeToString(sum[:])}
}

func (s *migrating) keeps(t *testing.T, name string, content []byte) {
	t.Helper()
	key := keptPrefix + name
	answer, err := s.client.PutObject(t.Context(), &s3.PutObjectInput{
		Bucket: &s.bucket, Key: &key, Body: bytes.NewReader(content),
		ContentType: aws.String("text/x-kept"), Metadata: map[string]string{"origin": "kept"},
	})
	require.NoError(t, err, name)
	s.kept[key] = note(answer.ETag, content)
}

func (s *migrating) keepsInParts(t *testing.T, name string, sizes ...int) {
	t.Helper()
	key := keptPrefix + name
	upload, err := s.client.CreateMultipartUpload(t.Context(), &s3.CreateMultipartUploadInput{
		Bucket: &s.bucket, Key: &key, ContentType: aws.String("text/x-kept"), Metadata: map[string]string{"origin": "kept"},
	})
	require.NoError(t, err)
	var content []byte
	done := &types.CompletedMultipartUpload{}
	for n, size := range sizes {
		part, number := s.bytes(size), aws.Int32(int32(n+1))
		answer, err := s.client.UploadPart(t.Context(), &s3.UploadPartInput{
			Bucket: &s.bucket, Key: &key, UploadId: upload.UploadId, PartNumber: number, Body: bytes.NewReader(part),
		})
		require.NoError(t, err)
		content = append(content, part...)
		done.Parts = append(done.Parts, types.CompletedPart{ETag: answer.ETag, PartNumber: number})
	}
	answer, err := s.client.CompleteMultipartUpload(t.Context(), &s3.CompleteMultipartUploadInput{
		Bucket: &s.bucket, Key: &key, UploadId: upload.UploadId, MultipartUpload: done,
	})
	require.NoError(t, err)
	s.kept[key] = note(answer.ETag, content)
	require.Contains(t, s.kept[key].etag, fmt.Sprintf("-%d", len(sizes)))
}

// isKept reads every kept object back: its bytes, its ETag, what was said of it, and that the listing shows it so.
func (s *migrating) isKept(t *testing.T) {
	t.Helper()
	found, listed, wanted := map[string]kept{}, map[string]string{}, map[string]string{}
	for key, was := range s.kept {
		object, err := s.client.GetObject(t.Context(), &s3.GetObjectInput{Bucket: &s.bucket, Key: &key})
		require.NoError(t, err, key)
		content, err := io.ReadAll(object.Body)
		require.NoError(t, err, key)
		require.NoError(t, object.Body.Close())
		require.Equal(t, "text/x-kept", aws.ToString(object.ContentType), key)
		require.Equal(t, map[string]string{"origin": "kept"}, object.Metadata, key)
		found[key], wanted[key] = note(object.ETag, content), was.etag
	}
	require.Equal(t, s.kept, found)
	pages := s3.NewListObjectsV2Paginator(s.client, &s3.ListObjectsV2Input{Bucket: &s.bucket, Prefix: aws.String(keptPrefix)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		require.NoError(t, err)
		for _, object := range page.Contents {
			listed[aws.ToString(object.Key)] = aws.ToString(object.ETag)
		}
	}
	require.Equal(t, wanted, listed)
}

// asks changes the class in the module's settings, as an administrator does.
func asks(t *testing.T, class string) {
	t.Helper()
	require.NoError(t, site.Configure(t.Context(), true, map[string]any{"storageClass": class, "logLevel": "Debug"}))
}

// moves goes to the class under load.
func (s *migrating) moves(t *testing.T, class string, seed uint64) {
	before := planeOf(t)
	clients := work(t, s.ground, "migration/", seed)
	clients.Begin("before the move")
	pause(t.Context(), 5*time.Second)
	notFailed(t, clients.Begin("the move to "+class))
	begun := time.Now()
	asks(t, class)
	awaitStoreOn(t, class)
	t.Logf("moved in %.0f s", time.Since(begun).Seconds())
	notFailed(t, clients.Begin("after the move"))
	pause(t.Context(), 5*time.Second)
	notFailed(t, clients.Begin("rest"))
	end(t, clients)
	s.isKept(t)
	require.NotEqual(t, before.ID, planeOf(t).ID)
	require.NoError(t, site.AwaitBucket(t.Context(), mainKey(), moduleLimit))
}

// isCalledBack asks for the other class and, as soon as objects are copied, for the old one again.
func (s *migrating) isCalledBack(t *testing.T, seed uint64) {
	before := planeOf(t)
	clients := work(t, s.ground, "migration/", seed)
	clients.Begin("a move that is called back")
	asks(t, otherHome)
	awaitCopying(t)
	asks(t, before.StorageClass)
	require.NoError(t, site.AwaitCondition(t.Context(), migrationLimit, migrationReady, plan.ReasonAborting))
	awaitStoreOn(t, before.StorageClass)
	notFailed(t, clients.Begin("rest"))
	end(t, clients)
	s.isKept(t)
	require.Equal(t, before.ID, planeOf(t).ID, "the store has stayed where it was")
}

// awaitCopying waits for the phase itself: the condition follows it by seconds, in which the way back may end.
func awaitCopying(t *testing.T) {
	t.Helper()
	require.NoError(t, site.Await(t.Context(), stage.Wish{What: "objects to be copied", Limit: migrationLimit, Look: func(ctx context.Context) (bool, string, error) {
		state, err := readState(ctx)
		if err != nil || state.Migration == nil {
			return false, "no migration", err
		}
		return state.Migration.Phase == plan.PhaseCopying, string(state.Migration.Phase), nil
	}}))
}

// outlivesTheModule disables the module while objects are copied. Both planes stay, and enabled again the move goes on.
func (s *migrating) outlivesTheModule(t *testing.T) {
	asks(t, otherHome)
	awaitCopying(t)
	require.NoError(t, site.Disable(t.Context()))
	require.NoError(t, site.Await(t.Context(), stage.Wish{What: "leaving to end", Limit: moduleLimit, Look: leavingEnded}))
	sets, err := garageSets(t.Context())
	require.NoError(t, err)
	require.Len(t, sets, 2)
	for _, set := range sets {
		require.NoError(t, site.Admin.Get(t.Context(), client.ObjectKeyFromObject(&set), &corev1.Secret{}))
	}
	volumes, err := claims(t.Context())
	require.NoError(t, err)
	require.Len(t, volumes, 6)

	asks(t, otherHome)
	awaitStoreOn(t, otherHome)
	require.NoError(t, site.AwaitBucket(t.Context(), mainKey(), moduleLimit))
	d := s.door(t) // the Services were made anew
	s.client = d.s3(aws.NewCredentialsCache(patient(d.of("migrating", mainBucket, ""))))
	awaitPut(t, s.client, s.bucket, "after the return")
	s.isKept(t)
}

// notFailed: clients notice nothing but a pause.
func notFailed(t *testing.T, p load.Phase) {
	t.Helper()
	tellPhase(t, p)
	require.Zero(t, p.Failed, "%s: %s", p.Name, p.Told())
}

// awaitStoreOn waits until the store is on the class, alone and ready, and nothing of another plane is left.
func awaitStoreOn(t *testing.T, class string) {
	t.Helper()
	require.NoError(t, site.Await(t.Context(), stage.Wish{What: "the store on " + class, Limit: migrationLimit, Look: func(ctx context.Context) (bool, string, error) {
		migration, err := site.Condition(ctx, migrationReady)
		if err != nil {
			return false, "", err
		}
		ready, err := site.Condition(ctx, storageReady)
		if err != nil {
			return false, migration.String(), err
		}
		decided, err := readPlan(ctx)
		if err != nil || len(decided.Planes) != 1 {
			return false, fmt.Sprintf("%s; %d planes", migration, len(decided.Planes)), err
		}
		strange, err := strangers(ctx, decided.Planes[0], class)
		done := len(strange) == 0 && migration.Reason == plan.ReasonNotNeeded && ready.Reason == plan.ReasonReady
		return done, fmt.Sprintf("%s; %s; not of the plane on %s: %v", migration, ready.Reason, class, strange), err
	}}))
}

// strangers are the objects of planes that do not belong to the plane on the class, and that of it which is missing.
func strangers(ctx context.Context, p plan.Plane, class string) ([]string, error) {
	found := []string{}
	missing := map[string]bool{"StatefulSet": true, "Secret": true, "ConfigMap": true, "PersistentVolumeClaim": true, "Service": true}
	own := names.GarageObject(p.ID)
	kinds := map[string]client.ObjectList{
		"StatefulSet": &appsv1.StatefulSetList{}, "Secret": &corev1.SecretList{}, "ConfigMap": &corev1.ConfigMapList{},
		"PersistentVolumeClaim": &corev1.PersistentVolumeClaimList{}, "Service": &corev1.ServiceList{}, "Pod": &corev1.PodList{},
	}
	for kind, list := range kinds {
		if err := site.Admin.List(ctx, list, client.InNamespace(names.Namespace), client.HasLabels{names.PlaneLabel}); err != nil {
			return nil, fmt.Errorf("list objects of kind %s: %w", kind, err)
		}
		err := meta.EachListItem(list, func(item runtime.Object) error {
			object, ok := item.(client.Object)
			if !ok || object.GetLabels()[names.PlaneLabel] != p.ID || elsewhere(object, class) {
				found = append(found, fmt.Sprintf("%s %s", kind, object.GetName()))
				return nil
			}
			delete(missing, kind)
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("read objects of kind %s: %w", kind, err)
		}
	}
	for kind := range missing {
		found = append(found, "no "+kind+" of "+own)
	}
	slices.Sort(found)
	return found, nil
}

// elsewhere tells whether the object is a volume of another class, or makes such.
func elsewhere(object client.Object, class string) bool {
	switch o := object.(type) {
	case *corev1.PersistentVolumeClaim:
		return ptr.Deref(o.Spec.StorageClassName, "") != class
	case *appsv1.StatefulSet:
		return ptr.Deref(o.Spec.VolumeClaimTemplates[0].Spec.StorageClassName, "") != class
	}
	return false
}
