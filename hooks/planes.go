package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/deckhouse/module-sdk/pkg"
	objectpatch "github.com/deckhouse/module-sdk/pkg/object-patch"
	"github.com/tidwall/gjson"

	"github.com/deckhouse/system-s3/lib/names"
	"github.com/deckhouse/system-s3/lib/plan"
)

// Annotations by which the StatefulSet and the Secret of a plane remember how it was made.
const (
	classFact    = "system-s3.deckhouse.io/storage-class"
	replicasFact = "system-s3.deckhouse.io/replicas"
	factorFact   = "system-s3.deckhouse.io/replication-factor"
	epochFact    = "system-s3.deckhouse.io/epoch"
	survivorFact = "system-s3.deckhouse.io/survivor"
	roleFact     = "system-s3.deckhouse.io/role"
)

// remains is everything of one plane that exists in the cluster.
type remains struct {
	statefulSet *statefulSetSnapshot
	secret      *secretSnapshot
	claims      []claimSnapshot
}

// observePlanes finds the planes of which anything exists, by their label.
func observePlanes(input *pkg.HookInput) ([]plan.ObservedPlane, error) {
	found, err := gatherRemains(input.Snapshots)
	if err != nil {
		return nil, err
	}
	planes := make([]plan.ObservedPlane, 0, len(found))
	claims, err := observeClaims(input.Snapshots)
	if err != nil {
		return nil, err
	}
	progress, err := observeProgress(input.Snapshots)
	if err != nil {
		return nil, err
	}
	for _, id := range slices.Sorted(maps.Keys(found)) {
		o := found[id].observed(id, input.Values.Get(planesPath+"."+id))
		o.Claims, o.Progress = claims[id], progress[id]
		planes = append(planes, o)
	}
	return planes, nil
}

func gatherRemains(snapshots pkg.Snapshots) (map[string]*remains, error) {
	found := map[string]*remains{}
	of := func(id string) *remains {
		if found[id] == nil {
			found[id] = &remains{}
		}
		return found[id]
	}
	sets, err := objectpatch.UnmarshalToStruct[statefulSetSnapshot](snapshots, statefulSetsSnapshot)
	if err != nil {
		return nil, fmt.Errorf("read StatefulSets: %w", err)
	}
	for i, s := range sets {
		of(s.Plane).statefulSet = &sets[i]
	}
	secrets, err := objectpatch.UnmarshalToStruct[secretSnapshot](snapshots, secretsSnapshot)
	if err != nil {
		return nil, fmt.Errorf("read Secrets: %w", err)
	}
	for i, s := range secrets {
		if s.Name == names.GarageObject(s.Plane) { // others carry the label as well, such as the one for Prometheus
			of(s.Plane).secret = &secrets[i]
		}
	}
	claims, err := objectpatch.UnmarshalToStruct[claimSnapshot](snapshots, claimsSnapshot)
	if err != nil {
		return nil, fmt.Errorf("read PersistentVolumeClaims: %w", err)
	}
	for _, c := range claims {
		r := of(c.Plane)
		r.claims = append(r.claims, c)
	}
	return found, nil
}

// observed is the plane as the planner sees it. The StatefulSet tells the facts; while it is away, for example between
// its orphan deletion and its return, the Secret does.
func (r *remains) observed(id string, remembered gjson.Result) plan.ObservedPlane {
	o := plan.ObservedPlane{ID: id}
	object := names.GarageObject(id)
	var err error
	switch {
	case r.statefulSet != nil:
		o.TemplateBytes = bytesOf(r.statefulSet.Size)
		o.Facts, err = readFacts("StatefulSet "+object, r.statefulSet.Facts)
	case r.secret != nil:
		o.Facts, err = readFacts("Secret "+object, r.secret.Facts)
	default:
		err = fmt.Errorf("only its volumes are left, StatefulSet and Secret %s are gone; put the Secret back from a backup, or delete the PersistentVolumeClaims %s if their data is not needed", object, r.claimNames())
	}
	o.Known = err == nil
	if _, secretErr := r.readBack(remembered); o.Known && secretErr != nil {
		err = fmt.Errorf("its Secret %s: %w; put it back from a backup, or, if the data is not needed, delete the StatefulSet %s and the PersistentVolumeClaims %s", object, secretErr, object, r.claimNames())
	}
	if err != nil {
		o.Unreadable = fmt.Sprintf("The store stays as it is, because plane %s cannot be put together: %s.", id, err)
	}
	return o
}

func (r *remains) claimNames() string {
	found := make([]string, 0, len(r.claims))
	for _, c := range r.claims {
		found = append(found, c.Name)
	}
	slices.Sort(found)
	return strings.Join(found, ", ")
}

// readFacts reads how the plane was made, and what it does, off the annotations of its object. The role is told also when
// the rest cannot be read: a plane that retires holds nothing up.
func readFacts(object string, annotations map[string]string) (plan.Facts, error) {
	role, err := readRole(object, annotations)
	if err != nil {
		return plan.Facts{}, err
	}
	f, err := readShape(object, annotations)
	f.Role = role
	return f, err
}

// readRole reads what the plane does. Planes of versions that had only one lack it.
func readRole(object string, annotations map[string]string) (plan.Role, error) {
	role := plan.Role(cmp.Or(annotations[roleFact], string(plan.RoleActive)))
	if !slices.Contains([]plan.Role{plan.RoleActive, plan.RoleTarget, plan.RoleRetiring}, role) {
		return "", fmt.Errorf("%s has an annotation %s that is neither active, target nor retiring", object, roleFact)
	}
	return role, nil
}

func readShape(object string, annotations map[string]string) (plan.Facts, error) {
	f := plan.Facts{StorageClass: annotations[classFact]}
	if f.StorageClass == "" {
		return plan.Facts{}, fmt.Errorf("%s has no annotation %s", object, classFact)
	}
	for _, number := range []struct {
		name string
		into *int
	}{{replicasFact, &f.Replicas}, {factorFact, &f.ReplicationFactor}, {epochFact, &f.Epoch}} {
		n, err := strconv.Atoi(annotations[number.name])
		if err != nil || n < 1 {
			return plan.Facts{}, fmt.Errorf("%s has no annotation %s with a number above 0", object, number.name)
		}
		*number.into = n
	}
	// Planes of versions that knew no epochs lack it: their only replica is the first.
	if survivor, exists := annotations[survivorFact]; exists {
		n, err := strconv.Atoi(survivor)
		if err != nil || n < 0 || n >= nodeKeys {
			return plan.Facts{}, fmt.Errorf("%s has an annotation %s that is no ordinal", object, survivorFact)
		}
		f.Survivor = n
	}
	return f, nil
}

// observeMigration is what the controller tells of a move to another StorageClass; nil when it tells of none.
func observeMigration(snapshots pkg.Snapshots) (*plan.MigrationState, error) {
	states, err := objectpatch.UnmarshalToStruct[plan.State](snapshots, stateSnapshot)
	if err != nil {
		return nil, fmt.Errorf("read ConfigMap %s: %w", names.StateConfigMap, err)
	}
	for _, s := range states {
		if s.Migration != nil {
			return s.Migration, nil
		}
	}
	return nil, nil
}

// observeProgress is what the controller tells of each plane.
func observeProgress(snapshots pkg.Snapshots) (map[string]plan.Progress, error) {
	states, err := objectpatch.UnmarshalToStruct[plan.State](snapshots, stateSnapshot)
	if err != nil {
		return nil, fmt.Errorf("read ConfigMap %s: %w", names.StateConfigMap, err)
	}
	progress := map[string]plan.Progress{}
	for _, s := range states {
		for _, p := range s.Planes {
			progress[p.ID] = plan.Progress{Epoch: p.Epoch, Serving: p.Available, Whole: p.Whole, Proven: p.Proven, Spoiled: p.Spoiled}
		}
	}
	return progress, nil
}
