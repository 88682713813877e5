package migration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhouse/system-s3/images/controller/internal/backend"
	"github.com/deckhouse/system-s3/lib/garage"
	"github.com/deckhouse/system-s3/lib/migration"
	"github.com/deckhouse/system-s3/lib/names"
	"github.com/deckhouse/system-s3/lib/plan"
)

// seen is what a pass observed, with the way to both planes.
type seen struct {
	migration.Facts

	source, target *side // nil when the plan has none
}

var errNoPlan = errors.New("there is no plan: the module is leaving")

func (c *Conductor) observe(ctx context.Context) (seen, error) {
	wanted, err := c.readPlan(ctx)
	if errors.Is(err, errNoPlan) {
		c.Stop()
		return seen{}, nil
	}
	if err != nil {
		return seen{}, err
	}
	state, err := c.readState(ctx)
	if err != nil {
		return seen{}, err
	}
	var s seen
	s.State = state.Migration
	for _, p := range wanted.Planes {
		s.Planes = append(s.Planes, migration.Plane{ID: p.ID, Role: p.Role, Frozen: p.Frozen != ""})
	}
	if s.State == nil || !s.State.Phase.Fenced() && s.State.Phase != plan.PhaseHolding {
		c.Board.Resume() // whatever a pass that failed has left behind
	}
	if s.State == nil && len(wanted.Planes) < 2 { // a source and a target
		return s, nil
	}
	err = c.observePlanes(ctx, &s, wanted)
	return s, err
}

func (c *Conductor) observePlanes(ctx context.Context, s *seen, wanted plan.Plan) error {
	err := c.lookAtBoth(ctx, s, wanted)
	if err != nil {
		return err
	}
	if s.Selected, err = c.selectedPlane(ctx); err != nil {
		return err
	}
	if s.Selected != c.selected {
		c.selected, c.since = s.Selected, time.Now()
	}
	s.SelectedFor = time.Since(c.since)
	c.mark(ctx, s)
	return nil
}

// lookAtBoth finds which plane is moved from and which to, and asks their replicas.
func (c *Conductor) lookAtBoth(ctx context.Context, s *seen, wanted plan.Plan) error {
	from, to := pair(s.State, wanted)
	for _, p := range wanted.Planes {
		looked, err := c.look(ctx, p)
		if err != nil {
			return err
		}
		switch p.ID {
		case from:
			s.source = &looked
		case to:
			s.target = &looked
		}
		if p.Role == plan.RoleRetiring {
			s.Deleting = looked.removed
		}
	}
	if s.source != nil {
		s.Doors = c.ask(ctx, *s.source)
	}
	s.Target = migration.Readiness{Awaited: "the target plane to be planned"}
	if s.target != nil {
		awaited := c.awaited(ctx, *s.target)
		s.Target = migration.Readiness{Whole: awaited == "", Awaited: awaited}
	}
	return nil
}

// pair tells which plane is moved from and which to. Without a state a plane that retires may be either: its doors tell.
func pair(state *plan.MigrationState, wanted plan.Plan) (from, to string) {
	if state != nil {
		return state.Source, state.Target
	}
	byRole := map[plan.Role]string{}
	for _, p := range wanted.Planes {
		byRole[p.Role] = p.ID
	}
	if byRole[plan.RoleTarget] != "" {
		return byRole[plan.RoleActive], byRole[plan.RoleTarget]
	}
	return byRole[plan.RoleRetiring], byRole[plan.RoleActive]
}

// ask asks all gateways of the source at once.
func (c *Conductor) ask(ctx context.Context, s side) []migration.Door {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	doors := make([]migration.Door, len(s.pods))
	var group sync.WaitGroup
	for i, p := range s.pods {
		doors[i] = migration.Door{Name: p.name, Run: p.run, Gone: s.removed && p.run == ""}
		if p.ip == "" || s.http == nil {
			continue
		}
		group.Go(func() {
			fenced, to, err := backend.Fenced(ctx, c.door(s, p))
			doors[i].Answers, doors[i].Fenced, doors[i].To = err == nil, fenced, to
		})
	}
	group.Wait()
	return doors
}

// awaited is what the target lacks to be whole, a clause.
func (c *Conductor) awaited(ctx context.Context, s side) string {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	for _, p := range s.pods {
		if !p.ready || p.ip == "" || s.http == nil {
			return p.name + " to be ready"
		}
	}
	if len(s.pods) == 0 {
		return "the replicas of plane " + s.plane.ID
	}
	admin := c.admin(s, s.pods[0])
	health, err := admin.GetClusterHealth(ctx)
	if err != nil {
		return "an answer of " + s.pods[0].name
	}
	history, err := admin.GetClusterLayoutHistory(ctx)
	if err != nil {
		return "an answer of " + s.pods[0].name
	}
	return c.settled(ctx, s, health, history)
}

func (c *Conductor) settled(ctx context.Context, s side, health garage.Health, history garage.History) string {
	switch {
	case history.CurrentVersion == 0:
		return "plane " + s.plane.ID + " to get its layout"
	case !health.Healthy() || health.StorageNodesUp < s.plane.ReplicationFactor || health.PartitionsAllOK != health.Partitions:
		return "all replicas of plane " + s.plane.ID + " to be connected"
	case history.Draining():
		return "plane " + s.plane.ID + " to synchronise its layout"
	}
	id, _ := internalKey(s)
	if _, err := c.admin(s, s.pods[0]).GetKeyInfo(ctx, id); err != nil {
		return "plane " + s.plane.ID + " to get its key"
	}
	return ""
}

// mark adds what this process knows of its own work.
func (c *Conductor) mark(ctx context.Context, s *seen) {
	if c.run != nil && !c.run.isOf(s.State) {
		c.Stop()
	}
	if c.run != nil {
		c.run.mark(s)
		c.run.buckets.ask(c.replica(s.source), c.replica(s.target))
	}
	s.Hold = c.holds(ctx, s)
	s.Uploads = c.unfinished(ctx, *s)
}

// holds is how the hold on writes stands now.
func (c *Conductor) holds(ctx context.Context, s *seen) migration.Hold {
	var told migration.Hold
	if rested := time.Since(c.hold.rested); !c.hold.rested.IsZero() && rested < holdRest {
		told.Resting = holdRest - rested
	}
	if c.hold.since.IsZero() || s.source == nil {
		return told
	}
	told.For = time.Since(c.hold.since)
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	if !c.hold.asked || c.hold.writing > 0 || !sameDoors(c.hold.doors, *s.source) || !backend.StillHeld(ctx, c.hold.doors) {
		c.hold.drained = false
		return told
	}
	told.Held, told.Drained = true, c.hold.drained
	return told
}

// sameDoors tells whether the hold is of every replica that is there.
func sameDoors(doors []backend.Door, s side) bool {
	there := slices.DeleteFunc(slices.Clone(s.pods), func(p pod) bool { return p.run == "" })
	return len(doors) > 0 && len(doors) == len(there) && !slices.ContainsFunc(there, func(p pod) bool {
		return !slices.ContainsFunc(doors, func(d backend.Door) bool { return d.Name == p.name })
	})
}

func (c *Conductor) readPlan(ctx context.Context) (plan.Plan, error) {
	return c.planFrom(ctx, c.Client)
}

func (*Conductor) planFrom(ctx context.Context, reader client.Reader) (plan.Plan, error) {
	var object corev1.ConfigMap
	err := reader.Get(ctx, key(names.PlanConfigMap), &object)
	if apierrors.IsNotFound(err) || err == nil && object.DeletionTimestamp != nil {
		return plan.Plan{}, errNoPlan
	}
	if err != nil {
		return plan.Plan{}, fmt.Errorf("read the plan: %w", err)
	}
	var p plan.Plan
	if err := json.Unmarshal([]byte(object.Data[names.PlanKey]), &p); err != nil {
		return plan.Plan{}, fmt.Errorf("decode the plan: %w", err)
	}
	return p, nil
}

// selectedPlane is the plane that the Service for clients selects.
func (c *Conductor) selectedPlane(ctx context.Context) (string, error) {
	var service corev1.Service
	err := c.Client.Get(ctx, key(names.GatewayService), &service)
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read Service %s: %w", names.GatewayService, err)
	}
	return strings.TrimSpace(service.Spec.Selector[names.PlaneLabel]), nil
}
