package migration

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhouse/system-s3/lib/migration"
	"github.com/deckhouse/system-s3/lib/names"
	"github.com/deckhouse/system-s3/lib/plan"
)

// readState reads past the cache: what this process has just written decides its next step.
func (c *Conductor) readState(ctx context.Context) (plan.State, error) {
	_, state, err := c.stateObject(ctx)
	return state, err
}

func (c *Conductor) stateObject(ctx context.Context) (*corev1.ConfigMap, plan.State, error) {
	var object corev1.ConfigMap
	err := c.Fresh.Get(ctx, key(names.StateConfigMap), &object)
	if apierrors.IsNotFound(err) {
		return nil, plan.State{}, nil
	}
	if err != nil {
		return nil, plan.State{}, fmt.Errorf("read the state: %w", err)
	}
	var state plan.State
	if err := json.Unmarshal([]byte(object.Data[names.StateKey]), &state); err != nil {
		return nil, plan.State{}, fmt.Errorf("decode key %s of ConfigMap %s: %w", names.StateKey, names.StateConfigMap, err)
	}
	return &object, state, nil
}

// record persists how far the migration is. A controller that lost its lease overwrites nobody: what was read must be
// the newest.
func (c *Conductor) record(ctx context.Context, change func(*plan.MigrationState) *plan.MigrationState) error {
	const tries = 3 // the reconciler of planes writes the same object
	var err error
	for range tries {
		if err = c.recordOnce(ctx, change); !apierrors.IsConflict(err) {
			return err
		}
	}
	return err
}

func (c *Conductor) recordOnce(ctx context.Context, change func(*plan.MigrationState) *plan.MigrationState) error {
	object, state, err := c.stateObject(ctx)
	if err != nil {
		return err
	}
	if state.Planes == nil {
		state.Planes = []plan.PlaneState{}
	}
	state.Migration = change(state.Migration)
	encoded, err := json.Marshal(state)
	if err != nil {
		return fmt.Errorf("encode the state: %w", err)
	}
	if object == nil {
		object = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Namespace: names.Namespace, Name: names.StateConfigMap,
			Labels: map[string]string{names.HeritageLabel: names.Heritage, names.ModuleLabel: names.Module},
		}, Data: map[string]string{names.StateKey: string(encoded)}}
		if err := c.Client.Create(ctx, object); err != nil {
			return fmt.Errorf("create the state: %w", err)
		}
		return nil
	}
	if object.Data[names.StateKey] == string(encoded) {
		return nil
	}
	object.Data[names.StateKey] = string(encoded)
	if err := c.Client.Update(ctx, object); err != nil {
		return fmt.Errorf("write the state: %w", err)
	}
	return nil
}

// tell persists what is waited for and how far the work is. Not while clients wait.
func (c *Conductor) tell(ctx context.Context, s seen, step migration.Step) error {
	waits := step.Kind == migration.Await || step.Kind == migration.Delete
	if s.State == nil || !waits || s.State.Phase == plan.PhaseHolding {
		return nil
	}
	told := c.figured(*s.State)
	if told.Awaited = step.Awaited; told == *s.State {
		return nil
	}
	return c.record(ctx, func(state *plan.MigrationState) *plan.MigrationState {
		if state == nil || state.Phase != told.Phase || state.Target != told.Target {
			return state
		}
		return &told
	})
}

// figured is the state with how far the work is.
func (c *Conductor) figured(state plan.MigrationState) plan.MigrationState {
	if c.run != nil {
		if figures, working := c.run.figures(); working {
			figures.Put(&state)
		}
	}
	return state
}

// uploadsInterval is how old the count of unfinished uploads may get.
const uploadsInterval = 2 * time.Second

// unfinished counts the source's unfinished multipart uploads, once everything else is ready. While writes are held they
// are counted when the rest is copied.
func (c *Conductor) unfinished(ctx context.Context, s seen) migration.Uploads {
	verifying := s.State != nil && s.State.Phase == plan.PhaseVerifying && s.Work.Verified
	if c.run == nil || !verifying && (s.State == nil || s.State.Phase != plan.PhaseHolding) {
		c.uploads = waiting{}
		return migration.Uploads{}
	}
	if c.uploads.since.IsZero() {
		c.uploads.since = time.Now()
	}
	if verifying && time.Since(c.uploads.looked) > uploadsInterval {
		c.countUploads(ctx)
	}
	return migration.Uploads{Count: c.uploads.count, Waited: time.Since(c.uploads.since)}
}

func (c *Conductor) countUploads(ctx context.Context) {
	count, err := c.run.buckets.uploads(ctx)
	if err != nil {
		count = max(1, c.uploads.count) // not known to be none
	} else {
		c.uploads.looked = time.Now()
	}
	c.uploads.count = count
}
