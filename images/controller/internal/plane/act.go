package plane

import (
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/log"

	keys "github.com/deckhouse/system-s3/lib/access"
	"github.com/deckhouse/system-s3/lib/garage"
	"github.com/deckhouse/system-s3/lib/layout"
)

// move does the next step of the change of the epoch, or, when its epoch is in force, of the plane.
func (r *Reconciler) move(ctx context.Context, f facts, a access) outcome {
	crossed, err := r.cross(ctx, f, a)
	if err == nil && crossed.Kind == layout.Arrived && f.unfinished() {
		crossed.Kind, crossed.Spoiled = layout.Spoil, f.Plane.Epoch
		crossed.Progress = "The replica that was to stay was not handed everything; the three are put together again."
	}
	if err != nil {
		return outcome{facts: f, Crossing: crossed, Problem: fmt.Sprintf("The number of copies cannot be changed: %v.", err)}
	}
	if crossed.Kind != layout.Arrived {
		return r.onTheWay(ctx, outcome{facts: f, Crossing: crossed}, a)
	}
	o := r.act(ctx, f, a)
	o.Crossing = crossed
	o.Crossing = r.settle(ctx, &o, a)
	if err := r.dropLeft(ctx, o); err != nil && o.Problem == "" {
		o.Problem = fmt.Sprintf("Volumes of replicas that were given up cannot be deleted: %v.", err)
	}
	return o
}

// onTheWay is all there is to do between two epochs.
func (r *Reconciler) onTheWay(ctx context.Context, o outcome, a access) outcome {
	if o.Garage != nil && a.admin != nil {
		o.KeyKnown, _ = r.ensureKey(ctx, o, a) // the next pass tells
	}
	return o
}

// act does the plane's next step. What goes wrong becomes the outcome's problem: the next pass tries again.
func (r *Reconciler) act(ctx context.Context, f facts, a access) outcome {
	o := outcome{facts: f}
	if f.Garage == nil {
		if !f.existed() {
			o.Step = layout.Decide(f.world())
		}
		return o
	}
	ctx, cancel := context.WithTimeout(ctx, changeTimeout)
	defer cancel()
	if err := r.connect(ctx, f, a); err != nil {
		log.FromContext(ctx).Info("nodes are not connected yet", "plane", f.Plane.ID, "error", err.Error())
	}
	step, err := r.advance(ctx, f, a)
	o.Step = step
	if err == nil {
		o.KeyKnown, err = r.ensureKey(ctx, o, a)
	}
	if err != nil {
		o.Problem = fmt.Sprintf("Garage on %s: %v.", a.asked.Pod, err)
	}
	return o
}

// connect makes the node that is asked connect to every Pod that it does not see: after a restart of all Pods at once
// nothing else names the new addresses at once.
func (r *Reconciler) connect(ctx context.Context, f facts, a access) error {
	var peers []string
	for _, peer := range f.all() {
		if peer.IP != "" && peer.Exists && !f.isUp(peer) {
			peers = append(peers, peer.ID+"@"+r.Gateways.Address(peer.IP).RPC)
		}
	}
	if len(peers) == 0 {
		return nil
	}
	failures, err := a.admin.ConnectClusterNodes(ctx, peers)
	if err != nil {
		return err
	}
	return errors.Join(failures...)
}

// advance decides the layout's next step and does it.
func (r *Reconciler) advance(ctx context.Context, f facts, a access) (layout.Step, error) {
	world := f.world()
	step := layout.Decide(world)
	if step.Kind == layout.Stage || step.Kind == layout.Apply {
		history, err := a.admin.GetClusterLayoutHistory(ctx)
		if err != nil {
			return step, err
		}
		world.Layout.Draining = history.Draining()
		step = layout.Decide(world)
	}
	if step.Kind != layout.Steady && step.Kind != layout.Wait {
		log.FromContext(ctx).Info("layout", "plane", f.Plane.ID, "message", step.Message)
	}
	switch step.Kind {
	case layout.Stage:
		return step, a.admin.UpdateClusterLayout(ctx, step.Changes)
	case layout.Revert:
		return step, a.admin.RevertClusterLayout(ctx)
	case layout.Apply:
		return apply(ctx, step, a.admin)
	case layout.Steady, layout.Wait, layout.Refuse:
	}
	return step, nil
}

// apply previews first: only the preview tells a layout that cannot be computed from a real failure.
func apply(ctx context.Context, step layout.Step, admin *garage.Client) (layout.Step, error) {
	err := admin.PreviewClusterLayoutChanges(ctx)
	var impossible *garage.LayoutError
	if errors.As(err, &impossible) {
		return layout.Step{
			Kind: layout.Refuse, Reason: layout.ReasonLayoutFailed,
			Message: "Garage cannot compute the layout: " + impossible.Message + ".",
		}, nil
	}
	if err != nil {
		return step, err
	}
	return step, admin.ApplyClusterLayout(ctx, step.Version)
}

var errKeyLost = errors.New("the internal key was deleted from Garage, which never takes a deleted id back")

// ensureKey imports the plane's internal key once and remembers that it is there.
func (r *Reconciler) ensureKey(ctx context.Context, o outcome, a access) (bool, error) {
	if o.Garage.Layout.Version == 0 || !o.Garage.Health.Available() {
		return false, nil
	}
	id, secret := keys.InternalKey(a.seed)
	if r.imported[o.Plane.ID] == secret {
		return true, nil
	}
	_, err := a.admin.GetKeyInfo(ctx, id)
	if garage.IsAbsent(err) {
		err = importKey(ctx, a.admin, garage.Key{AccessKeyID: id, SecretAccessKey: secret, Name: "system-s3"})
	}
	if err != nil {
		return false, fmt.Errorf("internal key: %w", err)
	}
	r.imported[o.Plane.ID] = secret
	return true, nil
}

func importKey(ctx context.Context, admin *garage.Client, key garage.Key) error {
	err := admin.ImportKey(ctx, key)
	if !garage.IsConflict(err) {
		return err
	}
	// Another pass imported it a moment ago, or somebody deleted it.
	_, err = admin.GetKeyInfo(ctx, key.AccessKeyID)
	if garage.IsAbsent(err) {
		return errKeyLost
	}
	return err
}
