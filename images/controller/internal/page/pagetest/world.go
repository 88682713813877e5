package pagetest

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhouse/system-s3/images/controller/internal/module"
	"github.com/deckhouse/system-s3/lib/api/v1alpha1"
	"github.com/deckhouse/system-s3/lib/names"
	"github.com/deckhouse/system-s3/lib/plan"
)

// Now is the time in these clusters.
var Now = time.Date(2026, 3, 14, 3, 7, 42, 0, time.UTC)

const gib = int64(1) << 30

// Well is a cluster in which all is well.
func Well() []client.Object {
	objects := store(plan.Verdict{OK: true, Reason: plan.ReasonReady, Message: "The store serves all requests."}, enough(), 3)
	objects = append(objects, platformBuckets()...)
	objects = append(objects, platformAccess()...)
	return append(objects,
		event("1", news{"SystemBucket", "d8-velero", "backups", "Ready", "The bucket is ready.", corev1.EventTypeNormal, 4 * time.Minute}),
		event("2", news{"Module", "", names.Module, plan.ReasonReady, "StorageReady=True: The store serves all requests.", corev1.EventTypeNormal, 31 * time.Minute}),
	)
}

// Trouble is a cluster at three in the morning: a node is gone, volumes grow, two buckets are full or nearly so.
func Trouble() []client.Object {
	const told = "2 of 3 replicas are up: garage-a-2 on node master-2 is not connected. The store works without redundancy; the loss of another replica makes it unavailable."
	objects := store(plan.Verdict{OK: true, Reason: plan.ReasonDegraded, Message: told},
		plan.Verdict{OK: true, Reason: plan.ReasonGrowing, Message: "Volumes grow to 40Gi."}, 2)
	objects = append(objects, platformBuckets()...)
	objects = append(objects, platformAccess()...)
	objects = append(objects,
		full(bucket("d8-registry", "images", 20*gib, 20*gib-7<<20, 18_204)),
		near(bucket("d8-loki", "logs-archive", 64*gib, 57*gib, 913_406)),
		broken(bucket("d8-tempo", "traces", 5*gib, 0, 0)),
	)
	return append(objects,
		event("1", news{"Module", "", names.Module, plan.ReasonDegraded, "StorageReady=True: " + told, corev1.EventTypeNormal, 7 * time.Minute}),
		event("2", news{"SystemBucket", "d8-registry", "images", "QuotaReached", "The quota by space is used up and writes are refused. Raise spec.size or delete objects.", corev1.EventTypeWarning, 22 * time.Minute}),
		event("3", news{"Module", "", names.Module, plan.ReasonGrowing, "CapacityReady=True: Volumes grow to 40Gi.", corev1.EventTypeNormal, 25 * time.Minute}),
	)
}

// Empty is a cluster with the module enabled and no SystemBucket.
func Empty() []client.Object {
	waiting := plan.Verdict{Reason: plan.ReasonWaitingForFirstBucket, Message: "The store is created with the first SystemBucket. Settings may change freely until then."}
	p := plan.Plan{Planes: []plan.Plane{}, Storage: waiting, Placement: placed(), Capacity: enough(), Migration: notNeeded()}
	return []client.Object{encoded(names.PlanConfigMap, names.PlanKey, p), about(p.Storage, p)}
}

// Many is Well with so many buckets.
func Many(buckets int) []client.Object {
	objects := Well()
	const namespaces, steps, seldom = 40, 79, 400
	for i := range buckets {
		namespace := fmt.Sprintf("d8-team-%02d", i%namespaces)
		size := int64(i%9+1) * gib
		sb := bucket(namespace, fmt.Sprintf("bucket-%04d", i), size, size/100*int64(i*i%steps), int64(i)*37)
		if i%seldom == seldom-1 {
			sb = near(bucket(namespace, sb.Name, size, size/100*int64(80+i/seldom), int64(i)*41))
		}
		objects = append(objects, sb,
			role(namespace, sb.Name+"-rw", sb.Name, names.ReadSubresource, names.WriteSubresource),
			binding(namespace, sb.Name+"-rw", rbacv1.Subject{Kind: "ServiceAccount", Namespace: namespace, Name: "app"}),
		)
	}
	return objects
}

// Hostile is a cluster in which somebody writes what a browser might run.
func Hostile() []client.Object {
	const script = `<script>alert("x")</script>`
	sb := broken(bucket("d8-x", "y", gib, 0, 0))
	sb.Status.Conditions[0].Message = script + `" onmouseover="alert(1)`
	sb.Status.BucketName = script
	return append(Well(), sb, event("9", news{"SystemBucket", "d8-x", "y", script, script, corev1.EventTypeWarning, time.Minute}),
		role("d8-x", "r", "y", names.ReadSubresource),
		binding("d8-x", "r", rbacv1.Subject{Kind: "User", Name: `javascript:alert(1)` + script}))
}

func enough() plan.Verdict {
	return plan.Verdict{OK: true, Reason: plan.ReasonEnough, Message: "Each replica has a volume of 40Gi."}
}

func placed() plan.Verdict {
	return plan.Verdict{OK: true, Reason: plan.ReasonPlaced, Message: "Three replicas on nodes with the label node-role.kubernetes.io/control-plane."}
}

func notNeeded() plan.Verdict {
	return plan.Verdict{OK: true, Reason: plan.ReasonNotNeeded, Message: "The store is on the wanted StorageClass."}
}

func named(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(namespace + "/" + name), ResourceVersion: "1"}
}

func encoded(name, key string, value any) *corev1.ConfigMap {
	data, _ := json.Marshal(value) //nolint:errchkjson // plain structs
	return &corev1.ConfigMap{ObjectMeta: named(names.Namespace, name), Data: map[string]string{key: string(data)}}
}

// store is three replicas, of which so many are up.
func store(storage, capacity plan.Verdict, up int) []client.Object {
	const replicas, size = 3, 40 * gib
	p := plan.Plan{Storage: plan.Verdict{OK: true, Reason: plan.ReasonReady}, Placement: placed(), Capacity: capacity, Migration: notNeeded()}
	p.Planes = []plan.Plane{{
		ID: "a", Role: plan.RoleActive, Epoch: 1, StorageClass: "local-xfs", Replicas: replicas, ReplicationFactor: replicas,
		VolumeSize: "40Gi", VolumeBytes: size, Tier: plan.TierMasters, NodeLabel: plan.MasterNodeLabel,
		Reasons: plan.Reasons{
			Replicas:     "Three replicas, because the control plane has more than one node.",
			Tier:         "Masters, because no node has the label node-role.deckhouse.io/system-s3 or node-role.deckhouse.io/system.",
			StorageClass: "StorageClass local-xfs, the default one of the cluster.",
			Volume:       "40Gi, because the sizes of all SystemBuckets need it.",
		},
	}}
	state := plan.PlaneState{ID: "a", Epoch: 1, LayoutVersion: 1, Healthy: up == replicas, Available: true, ReplicationFactor: replicas}
	objects := []client.Object{encoded(names.PlanConfigMap, names.PlanKey, p), about(storage, p)}
	for i := range replicas {
		grown := size
		if capacity.Reason == plan.ReasonGrowing && i > 0 {
			grown = size - 5*gib //nolint:mnd // a step of growth
		}
		state.Replicas = append(state.Replicas, plan.ReplicaState{
			Ordinal: i, Node: "master-" + strconv.Itoa(i), Up: i < up, Ready: i < up,
			VolumeBytes: grown, VolumeFree: grown / 100 * int64(38-7*i), ClaimBytes: grown,
		})
	}
	return append(objects, encoded(names.StateConfigMap, names.StateKey, plan.State{Planes: []plan.PlaneState{state}}))
}

// about is Module/system-s3 with our conditions.
func about(storage plan.Verdict, p plan.Plan) client.Object {
	object := module.Object()
	object.SetResourceVersion("1")
	var list []any
	for i, c := range []module.Condition{
		{Type: module.StorageReady, Verdict: storage},
		{Type: module.PlacementReady, Verdict: p.Placement},
		{Type: module.CapacityReady, Verdict: p.Capacity},
		{Type: module.MigrationReady, Verdict: p.Migration},
	} {
		told := map[bool]string{true: "True", false: "False"}[c.OK]
		list = append(list, map[string]any{
			"type": c.Type, "status": told, "reason": c.Reason, "message": c.Message,
			"lastTransitionTime": Now.Add(-time.Duration(7+i*300) * time.Minute).Format(time.RFC3339),
		})
	}
	object.Object["status"] = map[string]any{"conditions": list}
	return object
}

func bucket(namespace, name string, size, used, objects int64) *v1alpha1.SystemBucket {
	sb := &v1alpha1.SystemBucket{ObjectMeta: named(namespace, name)}
	sb.Spec.Size = *resource.NewQuantity(size, resource.BinarySI)
	sb.Status.BucketName = names.Bucket(namespace, name, string(sb.UID))
	sb.Status.Used, sb.Status.Objects = resource.NewQuantity(used, resource.BinarySI), &objects
	sb.Status.Conditions = []metav1.Condition{
		{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonReady, Message: "The bucket is ready."},
		{Type: v1alpha1.ConditionQuotaAvailable, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonWithinQuota, Message: "Both quotas leave room."},
	}
	return sb
}

func full(sb *v1alpha1.SystemBucket) *v1alpha1.SystemBucket {
	c := &sb.Status.Conditions[1]
	c.Status, c.Reason = metav1.ConditionFalse, v1alpha1.ReasonQuotaReached
	c.Message = "The quota by space is used up and writes are refused. Raise spec.size or delete objects."
	return sb
}

func near(sb *v1alpha1.SystemBucket) *v1alpha1.SystemBucket {
	c := &sb.Status.Conditions[1]
	c.Reason, c.Message = v1alpha1.ReasonNearQuota, "More than 80 % of the quota by space is used."
	return sb
}

func broken(sb *v1alpha1.SystemBucket) *v1alpha1.SystemBucket {
	c := &sb.Status.Conditions[0]
	c.Status, c.Reason = metav1.ConditionFalse, v1alpha1.ReasonBackendError
	c.Message = "Garage: CreateBucket: 503: Could not reach quorum of 2 nodes. It is tried again."
	sb.Status.Used, sb.Status.Objects = nil, nil
	return sb
}

func platformBuckets() []client.Object {
	return []client.Object{
		bucket("d8-loki", "logs", 16*gib, 6*gib+gib/5, 204_118),
		bucket("d8-monitoring", "metrics", 10*gib, 3*gib, 5_207),
		bucket("d8-velero", "backups", 12*gib, gib+gib/2, 1_930),
		bucket("d8-code", "artifacts", 4*gib, 212<<20, 733),
		bucket("kube-system", "etcd-backup", 2*gib, 0, 0),
	}
}

func platformAccess() []client.Object {
	account := func(namespace, name string) rbacv1.Subject {
		return rbacv1.Subject{Kind: "ServiceAccount", Namespace: namespace, Name: name}
	}
	admins := &rbacv1.ClusterRole{ObjectMeta: named("", "cluster-admin"), Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}},
	}}
	bound := &rbacv1.ClusterRoleBinding{
		ObjectMeta: named("", "cluster-admin"), RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{Kind: "Group", Name: "system:masters"}},
	}
	both := []string{names.ReadSubresource, names.WriteSubresource}
	return []client.Object{
		admins, bound,
		role("d8-loki", "writer", "logs", both...), binding("d8-loki", "writer", account("d8-loki", "loki")),
		role("d8-loki", "reader", "logs", names.ReadSubresource), binding("d8-loki", "reader", account("d8-monitoring", "grafana")),
		role("d8-monitoring", "metrics", "metrics", both...), binding("d8-monitoring", "metrics", account("d8-monitoring", "prometheus")),
		role("d8-velero", "backups", "backups", both...), binding("d8-velero", "backups", account("d8-velero", "velero")),
		role("kube-system", "backup", "etcd-backup", names.WriteSubresource), binding("kube-system", "backup", account("kube-system", "etcd-backup")),
	}
}

func role(namespace, name, bucket string, subresources ...string) *rbacv1.Role {
	r := &rbacv1.Role{ObjectMeta: named(namespace, name)}
	rule := rbacv1.PolicyRule{APIGroups: []string{names.Group}, ResourceNames: []string{bucket}, Verbs: []string{"get"}}
	for _, each := range subresources {
		rule.Resources = append(rule.Resources, names.Resource+"/"+each)
	}
	r.Rules = []rbacv1.PolicyRule{rule}
	return r
}

func binding(namespace, role string, subject rbacv1.Subject) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: named(namespace, role), RoleRef: rbacv1.RoleRef{Kind: "Role", Name: role}, Subjects: []rbacv1.Subject{subject},
	}
}

// news is what an event tells.
type news struct {
	kind, namespace, name   string
	reason, note, eventType string
	ago                     time.Duration
}

func event(id string, t news) *corev1.Event {
	e := &corev1.Event{ObjectMeta: named("default", id), Reason: t.reason, Message: t.note, Type: t.eventType}
	e.InvolvedObject = corev1.ObjectReference{Kind: t.kind, Namespace: t.namespace, Name: t.name}
	e.EventTime, e.ReportingController = metav1.NewMicroTime(Now.Add(-t.ago)), names.Module
	return e
}
