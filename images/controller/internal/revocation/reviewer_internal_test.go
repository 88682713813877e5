package revocation

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhouse/system-s3/images/controller/internal/fixture"
	"github.com/deckhouse/system-s3/lib/access"
	"github.com/deckhouse/system-s3/lib/names"
	"github.com/deckhouse/system-s3/lib/sts"
)

var errDown = errors.New("connection refused")

// scene is a leader with a ConfigMap of its own, an RBAC that can be changed and gateways that remember what they were
// told.
type scene struct {
	*Reviewer

	ledger   *Ledger
	recorder *Recorder
	now      time.Time

	mu      sync.Mutex
	granted map[string]access.Permission // by user; everything for whom it does not name
	down    bool
	asked   []sts.Identity
	told    [][]entry
	logged  []string
}

func newScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{now: noon, granted: map[string]access.Permission{}}
	s.lead(fixture.Builder(t).Build())
	return s
}

// lead begins anew, as another leader would, with what is in the cluster.
func (s *scene) lead(cluster client.Client) {
	now := func() time.Time { return s.now }
	log := funcr.New(func(_, args string) { s.logged = append(s.logged, args) }, funcr.Options{})
	s.ledger = NewLedger(time.Minute, now)
	s.recorder = &Recorder{Ledger: s.ledger, Reader: cluster, Writer: cluster, Now: now, Log: log}
	s.Reviewer = &Reviewer{Reader: cluster, Authorizer: s, Publisher: s, Now: now, Log: log, Pace: PaceFor(time.Minute)}
}

func (s *scene) Authorize(_ context.Context, id sts.Identity, role access.Role) (access.Permission, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, id)
	if s.down {
		return 0, errDown
	}
	if granted, ok := s.granted[id.Username]; ok {
		return granted & role.Permission, nil
	}
	return role.Permission, nil
}

func (s *scene) Publish(_ context.Context, list []entry) { s.told = append(s.told, list) }

// issue hands out a key to an account, and writes that down.
func (s *scene) issue(t *testing.T, account string, p access.Permission) {
	t.Helper()
	s.ledger.Note(issued(account, p, s.now.Add(30*time.Minute)))
	s.recorder.write(t.Context())
}

func (s *scene) last(t *testing.T) []entry {
	t.Helper()
	require.NotEmpty(t, s.told)
	return s.told[len(s.told)-1]
}

func (s *scene) ticks(t *testing.T, everybody ...bool) {
	t.Helper()
	for _, all := range everybody {
		s.tick(t.Context(), all)
	}
}

const app = "system:serviceaccount:d8-app:app"

func TestALostRightIsToldAndTakenBack(t *testing.T) {
	s := newScene(t)
	s.issue(t, "app", access.ReadWrite)
	s.issue(t, "other", access.Read)
	s.ticks(t, true, true)
	require.Empty(t, s.last(t), "everybody has what he had")
	require.Equal(t, []string{"g"}, s.asked[0].Groups, "asked with all that the apiserver had told")
	require.Equal(t, map[string][]string{"k": {"v"}}, s.asked[0].Extra)
	require.Equal(t, "1", s.asked[0].UID)

	s.granted[app] = access.Read
	s.ticks(t, true)
	require.Empty(t, s.last(t), "refused once may be an accident")
	s.asked = nil
	s.ticks(t, false)
	require.Len(t, s.asked, 1, "only whose right is in doubt is asked about")
	require.Equal(t, []entry{{
		Subject: access.SubjectTag(app).String(), Bucket: access.BucketTag("d8-app-data-abc").String(),
		Permission: access.Write, Until: noon.Add(31 * time.Minute),
	}}, s.last(t))
	require.Contains(t, s.logged[len(s.logged)-1], "a right was taken away")

	delete(s.granted, app)
	s.ticks(t, false)
	require.Empty(t, s.last(t), "a right that is given back counts at once")

	s.granted[app] = 0
	s.ticks(t, true, false)
	require.Len(t, s.last(t), 1)
	s.now = noon.Add(31 * time.Minute)
	s.ticks(t, true)
	require.Empty(t, s.last(t), "no key lives any more")
}

func TestAnotherLeaderForgetsNothing(t *testing.T) {
	s := newScene(t)
	cluster := s.recorder.Writer
	s.issue(t, "app", access.ReadWrite)
	s.granted[app] = 0
	s.ticks(t, true, true)
	require.Len(t, s.last(t), 1)

	s.lead(cluster)
	s.told = nil
	s.ticks(t, true)
	require.Empty(t, s.told, "gateways keep the list of the leader before until this one knows as much")
	s.ticks(t, true)
	require.Len(t, s.last(t), 1)
}

func TestWhatIsNotKnownStaysAsItWas(t *testing.T) {
	s := newScene(t)
	s.issue(t, "app", access.ReadWrite)
	s.down = true
	s.ticks(t, true, true)
	require.Empty(t, s.told, "nothing is known yet")
	s.down = false
	s.granted[app] = 0
	s.ticks(t, true, true)
	require.Len(t, s.last(t), 1)
	s.down = true
	s.ticks(t, true, true)
	require.Len(t, s.last(t), 1, "an apiserver that is away gives nobody his right back")
	s.down, s.granted = false, map[string]access.Permission{}
	s.ticks(t, true)
	require.Empty(t, s.last(t))
}

func TestABrokenConfigMapGivesNobodyHisRightBack(t *testing.T) {
	s := newScene(t)
	s.issue(t, "app", access.ReadWrite)
	s.granted[app] = 0
	s.ticks(t, true, true)
	broken := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: names.Namespace, Name: names.LiveKeysConfigMap}
	require.NoError(t, s.recorder.Writer.Get(t.Context(), key, broken))
	require.Equal(t, names.Heritage, broken.Labels[names.HeritageLabel])
	broken.BinaryData[names.LiveKeysKey] = []byte("no gzip")
	require.NoError(t, s.recorder.Writer.Update(t.Context(), broken))
	s.ticks(t, true)
	require.Len(t, s.last(t), 1)
	require.NoError(t, s.recorder.Writer.Delete(t.Context(), broken))
	s.ticks(t, true)
	require.Len(t, s.last(t), 1, "a deleted one does not either")
	broken.ResourceVersion = ""
	require.NoError(t, s.recorder.Writer.Create(t.Context(), broken))
	s.issue(t, "other", access.Read)
	holdings, err := store{reader: s.recorder.Reader, now: s.recorder.Now}.read(t.Context())
	require.NoError(t, err, "the next key puts it right")
	require.Len(t, holdings, 1)
}

// TestReplicasWriteSideBySide has three replicas write at the same time; conflicts are theirs to settle.
func TestReplicasWriteSideBySide(t *testing.T) {
	cluster := fixture.Builder(t).Build()
	now := func() time.Time { return noon }
	var writing sync.WaitGroup
	errs := make(chan error, 3)
	for _, replica := range []string{"a", "b", "c"} {
		writing.Go(func() {
			ledger := NewLedger(time.Minute, now)
			for _, account := range []string{"shared", replica} {
				ledger.Note(issued(account, access.Read, noon.Add(time.Hour)))
			}
			fresh, _ := ledger.take()
			_, err := store{reader: cluster, writer: cluster, now: now}.add(t.Context(), fresh)
			errs <- err
		})
	}
	writing.Wait()
	for range 3 {
		require.NoError(t, <-errs)
	}
	holdings, err := store{reader: cluster, now: now}.read(t.Context())
	require.NoError(t, err)
	require.Len(t, holdings, 4)
}

func TestWhatDoesNotFitIsGivenUpFromTheEnd(t *testing.T) {
	var many []Holding
	for i := range 30_000 {
		h := Holding{User: access.SubjectTag(string(rune(i))).String(), Bucket: access.BucketTag(string(rune(i))).String()}
		h.Until = noon.Add(time.Duration(i) * time.Second)
		many = append(many, h)
	}
	sorted := together(many)
	data, dropped, err := encode(sorted)
	require.NoError(t, err)
	require.LessOrEqual(t, len(data), maxStored)
	require.Positive(t, dropped)
	object := &corev1.ConfigMap{BinaryData: map[string][]byte{names.LiveKeysKey: data}}
	kept, err := store{now: func() time.Time { return noon.Add(-time.Hour) }}.decode(object)
	require.NoError(t, err)
	require.Len(t, kept, len(sorted)-dropped)
	require.Equal(t, sorted[0].User, kept[0].User, "those that live longest stay")
}
