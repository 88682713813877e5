package plane

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/deckhouse/system-s3/images/controller/internal/backend"
	"github.com/deckhouse/system-s3/images/controller/internal/module"
	keys "github.com/deckhouse/system-s3/lib/access"
	"github.com/deckhouse/system-s3/lib/layout"
	"github.com/deckhouse/system-s3/lib/names"
	"github.com/deckhouse/system-s3/lib/plan"
)

const (
	steadyInterval  = 10 * time.Second // how old the store's health may get
	waitingInterval = 2 * time.Second
	nextStep        = 100 * time.Millisecond
	crossInterval   = time.Second // while clients wait for the next step
)

// Gateways tells where a Pod with an IP answers and with which client.
type Gateways interface {
	Address(podIP string) backend.Address
	Client(ca string) (*http.Client, error)
}

// Conditions publishes the conditions on Module/system-s3.
type Conditions interface {
	Publish(ctx context.Context, conditions []module.Condition) error
}

// Reconciler makes all planes real. All of its work is one request.
type Reconciler struct {
	Client     client.Client
	Gateways   Gateways
	Conditions Conditions
	Board      *backend.Board
	Logs       Logs // nil: nobody knows why a process ended

	imported map[string]string // by plane: the internal key's secret that Garage was seen to have
	silent   map[string]int    // by plane: passes in a row in which no node answered
	// proofs by plane. A new leader begins anew, which costs time and risks nothing.
	proofs map[string]layout.Proof
	// holds on writes that were begun, and epochs into which replicas are being restarted, by plane.
	holds  map[string]held
	begun  map[string]int
	memory memory
	still  string // the plane whose replicas are to stay as they are, since the store goes over from it
}

// New is the reconciler of all planes.
func New(c client.Client, gateways Gateways, conditions Conditions, board *backend.Board) *Reconciler {
	return &Reconciler{
		Client: c, Gateways: gateways, Conditions: conditions, Board: board,
		imported: map[string]string{}, silent: map[string]int{}, proofs: map[string]layout.Proof{},
		holds: map[string]held{}, begun: map[string]int{},
		memory: newMemory(),
	}
}

// Reconcile does one pass over all planes: observe, decide, act, tell.
func (r *Reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	wanted, enabled, err := r.readPlan(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	if !enabled {
		// The module is leaving: whoever disabled it takes over from here.
		r.Board.Clear()
		return reconcile.Result{}, nil
	}
	previous, err := r.readState(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	r.still = leftPlane(previous)
	r.forgetAllBut(wanted)
	outcomes := make([]outcome, 0, len(wanted.Planes))
	connections := map[string]*backend.Connection{}
	for _, p := range wanted.Planes {
		if p.Role == plan.RoleRetiring {
			continue // whoever moves the store takes it away
		}
		o, connection := r.pass(ctx, p, previousOf(previous, p.ID))
		outcomes = append(outcomes, o)
		connections[p.ID] = connection
	}
	if slices.ContainsFunc(outcomes, r.fellSilent) {
		return reconcile.Result{RequeueAfter: waitingInterval}, nil
	}
	err = r.tell(ctx, telling{wanted, previous, outcomes, connections})
	if apierrors.IsConflict(err) {
		// What was read is not the newest; that is no error, only a reason to look again.
		return reconcile.Result{RequeueAfter: waitingInterval}, nil
	}
	return reconcile.Result{RequeueAfter: interval(outcomes)}, err
}

// forgetAllBut forgets planes that are gone: another one may get their id.
func (r *Reconciler) forgetAllBut(wanted plan.Plan) {
	gone := func(id string) bool {
		return !slices.ContainsFunc(wanted.Planes, func(p plan.Plane) bool { return p.ID == id })
	}
	maps.DeleteFunc(r.imported, func(id, _ string) bool { return gone(id) })
	maps.DeleteFunc(r.silent, func(id string, _ int) bool { return gone(id) })
	maps.DeleteFunc(r.begun, func(id string, _ int) bool { return gone(id) })
	maps.DeleteFunc(r.holds, func(id string, _ held) bool { return gone(id) })
	maps.DeleteFunc(r.proofs, func(key string, _ layout.Proof) bool {
		id, _, _ := strings.Cut(key, "/")
		return gone(id)
	})
}

// pass goes over one plane.
func (r *Reconciler) pass(ctx context.Context, p plan.Plane, previous plan.PlaneState) (outcome, *backend.Connection) {
	if begun := r.begun[p.ID]; begun == p.Epoch {
		previous.Handed = begun // what was read may be older
	}
	f, a, err := r.observe(ctx, p, previous)
	if err != nil {
		return outcome{facts: f, Crossing: f.remembered(), Problem: sentence(err)}, nil
	}
	f.Begun = r.begun[p.ID]
	o := r.move(ctx, f, a)
	if p.ID == r.still {
		o.Rolling = "Replicas stay as they are until the store has gone over to another StorageClass."
	} else if err := r.turn(ctx, &o, a); err != nil {
		o.Rolling = fmt.Sprintf("Replicas can be neither restarted nor moved: %v.", err)
	}
	r.welcome(ctx, o, a)
	if !o.usable() || o.Crossing.Shut || o.Crossing.Holding {
		return o, nil
	}
	id, secret := keys.InternalKey(a.seed)
	return o, &backend.Connection{
		Plane: p.ID, Store: keys.StoreID(a.seed), Admin: a.admin, KeyID: id, CA: a.ca,
		S3: backend.S3(r.Gateways.Address(a.asked.IP).S3, id, secret, a.http),
	}
}

func sentence(err error) string {
	text := err.Error()
	return strings.ToUpper(text[:1]) + text[1:] + "."
}

// fellSilent tells whether a store that had answered did not answer for once. One answer that came too late is no loss of
// the quorum, and the conditions must not flap: the next pass, which comes soon, tells.
func (r *Reconciler) fellSilent(o outcome) bool {
	if o.Garage != nil || o.Problem != "" || !o.existed() {
		r.silent[o.Plane.ID] = 0
		return false
	}
	r.silent[o.Plane.ID]++
	return r.silent[o.Plane.ID] == 1
}

func previousOf(state plan.State, id string) plan.PlaneState {
	i := slices.IndexFunc(state.Planes, func(p plan.PlaneState) bool { return p.ID == id })
	if i < 0 {
		return plan.PlaneState{ID: id}
	}
	return state.Planes[i]
}

// interval is when to look again: at once while a step leads to the next, soon while something is awaited.
func interval(outcomes []outcome) time.Duration {
	next := steadyInterval
	for _, o := range outcomes {
		next = min(next, o.interval())
	}
	return next
}

func (o outcome) interval() time.Duration {
	switch {
	case o.Problem == "" && o.stepped():
		return nextStep
	case o.Crossing.Shut || o.Crossing.Kind != layout.Arrived:
		return crossInterval
	case !o.usable():
		return waitingInterval
	case o.Rolling != "" || o.Moving != "" || o.filling() || o.Crossing.Progress != "":
		return proofInterval
	}
	return steadyInterval
}

// stepped tells whether the layout was changed, which leads to the next step.
func (o outcome) stepped() bool {
	return o.Step.Kind == layout.Stage || o.Step.Kind == layout.Apply || o.Step.Kind == layout.Revert
}

// readPlan reads the plan; false when there is none, which means that the module is disabled.
func (r *Reconciler) readPlan(ctx context.Context) (plan.Plan, bool, error) {
	var object corev1.ConfigMap
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: names.Namespace, Name: names.PlanConfigMap}, &object)
	if apierrors.IsNotFound(err) {
		return plan.Plan{}, false, nil
	}
	if err != nil {
		return plan.Plan{}, false, fmt.Errorf("read the plan: %w", err)
	}
	var p plan.Plan
	if err := json.Unmarshal([]byte(object.Data[names.PlanKey]), &p); err != nil {
		return plan.Plan{}, false, fmt.Errorf("decode the plan: %w", err)
	}
	return p, object.DeletionTimestamp == nil, nil
}

func (r *Reconciler) readState(ctx context.Context) (plan.State, error) {
	var object corev1.ConfigMap
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: names.Namespace, Name: names.StateConfigMap}, &object)
	if apierrors.IsNotFound(err) {
		return plan.State{}, nil
	}
	if err != nil {
		return plan.State{}, fmt.Errorf("read the state: %w", err)
	}
	var state plan.State
	// A state that cannot be read is not overwritten: it holds facts that cannot be seen again.
	if err := json.Unmarshal([]byte(object.Data[names.StateKey]), &state); err != nil {
		return plan.State{}, fmt.Errorf("decode key %s of ConfigMap %s: %w", names.StateKey, names.StateConfigMap, err)
	}
	return state, nil
}

// writeState writes what is known of planes. How far a migration is, somebody else writes: it is taken from the very
// object that is replaced.
func (r *Reconciler) writeState(ctx context.Context, state plan.State) error {
	var object corev1.ConfigMap
	getErr := r.Client.Get(ctx, client.ObjectKey{Namespace: names.Namespace, Name: names.StateConfigMap}, &object)
	if getErr == nil {
		var present plan.State
		if err := json.Unmarshal([]byte(object.Data[names.StateKey]), &present); err != nil {
			return fmt.Errorf("decode key %s of ConfigMap %s: %w", names.StateKey, names.StateConfigMap, err)
		}
		state.Migration = present.Migration
	}
	encoded, err := json.Marshal(state)
	if err != nil {
		return fmt.Errorf("encode the state: %w", err)
	}
	switch err = getErr; {
	case apierrors.IsNotFound(err):
		object = corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Namespace: names.Namespace, Name: names.StateConfigMap,
			Labels: map[string]string{names.HeritageLabel: names.Heritage, names.ModuleLabel: names.Module},
		}, Data: map[string]string{names.StateKey: string(encoded)}}
		if err := r.Client.Create(ctx, &object); err != nil {
			return fmt.Errorf("create the state: %w", err)
		}
		return nil
	case err != nil:
		return fmt.Errorf("read the state: %w", err)
	case object.Data[names.StateKey] == string(encoded):
		return nil
	}
	changed := object.DeepCopy()
	if changed.Data == nil {
		changed.Data = map[string]string{}
	}
	changed.Data[names.StateKey] = string(encoded)
	// With the resourceVersion of what was read: a controller that lost its lease must not overwrite its successor.
	if err := r.Client.Update(ctx, changed); err != nil {
		return fmt.Errorf("write the state: %w", err)
	}
	return nil
}
