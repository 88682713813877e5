// Package consumer is what somebody who uses a bucket writes: a ServiceAccount, a Role and a RoleBinding, and a Pod with
// a projected token and the bucket's ConfigMap as environment. Nothing in it is special to tests.
package consumer

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/deckhouse/system-s3/lib/names"
)

const (
	// user is any but root.
	user = int64(64535)
	// tokenSeconds is the shortest life of a projected token: kubelet renews it in time.
	tokenSeconds = int64(600)

	scratch = "/tmp"
)

// Consumer is a Pod that uses a bucket in its own namespace.
type Consumer struct {
	// Name of the Pod and of its ServiceAccount.
	Name      string
	Namespace string
	// Bucket is the name of the SystemBucket.
	Bucket string
	Image  string
	Args   []string
}

// Key of the Pod.
func (c Consumer) Key() client.ObjectKey {
	return client.ObjectKey{Namespace: c.Namespace, Name: c.Name}
}

// ServiceAccount makes the consumer's identity.
func (c Consumer) ServiceAccount(ctx context.Context, kube client.Client) error {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: c.Name}}
	if _, err := controllerutil.CreateOrUpdate(ctx, kube, account, func() error { return nil }); err != nil {
		return fmt.Errorf("make ServiceAccount %s: %w", c.Name, err)
	}
	return nil
}

// Allow makes a Role for the bucket and a RoleBinding of it to the consumer. Each of the rights is "read" or "write".
func (c Consumer) Allow(ctx context.Context, kube client.Client, rights ...string) error {
	meta := metav1.ObjectMeta{Namespace: c.Namespace, Name: c.Bucket + "-" + c.Name}
	resources := make([]string, 0, len(rights))
	for _, right := range rights {
		resources = append(resources, names.Resource+"/"+right)
	}
	role := &rbacv1.Role{ObjectMeta: meta}
	_, err := controllerutil.CreateOrUpdate(ctx, kube, role, func() error {
		role.Rules = []rbacv1.PolicyRule{{
			APIGroups: []string{names.Group}, Resources: resources, ResourceNames: []string{c.Bucket}, Verbs: []string{"get"},
		}}
		return nil
	})
	if err != nil {
		return fmt.Errorf("make Role %s: %w", meta.Name, err)
	}
	binding := &rbacv1.RoleBinding{ObjectMeta: meta}
	_, err = controllerutil.CreateOrUpdate(ctx, kube, binding, func() error {
		binding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name}
		binding.Subjects = []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: c.Namespace, Name: c.Name}}
		return nil
	})
	if err != nil {
		return fmt.Errorf("make RoleBinding %s: %w", meta.Name, err)
	}
	return nil
}

// Forbid takes the consumer's RoleBinding away.
func (c Consumer) Forbid(ctx context.Context, kube client.Client) error {
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: c.Bucket + "-" + c.Name}}
	if err := client.IgnoreNotFound(kube.Delete(ctx, binding)); err != nil {
		return fmt.Errorf("delete RoleBinding %s: %w", binding.Name, err)
	}
	return nil
}

// Pod is the consumer's Pod. All it is told comes from the ConfigMap beside the SystemBucket.
func (c Consumer) Pod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: c.Name},
		Spec: corev1.PodSpec{
			ServiceAccountName:           c.Name,
			AutomountServiceAccountToken: ptr.To(false),
			RestartPolicy:                corev1.RestartPolicyNever,
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To(user), RunAsGroup: ptr.To(user), FSGroup: ptr.To(user),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			// On a cluster whose nodes are all masters there is no other place.
			Tolerations: []corev1.Toleration{{Key: "node-role.kubernetes.io/control-plane", Operator: corev1.TolerationOpExists}},
			Containers:  []corev1.Container{c.container()},
			Volumes:     []corev1.Volume{c.credentials(), c.scratch()},
		},
	}
}

func (c Consumer) container() corev1.Container {
	connection := corev1.LocalObjectReference{Name: names.ConnectionConfigMap(c.Bucket)}
	return corev1.Container{
		Name: "consumer", Image: c.Image, Args: c.Args,
		EnvFrom: []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: connection}}},
		VolumeMounts: []corev1.VolumeMount{
			{Name: "system-s3", MountPath: names.ConsumerDir, ReadOnly: true},
			{Name: "scratch", MountPath: scratch},
		},
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: ptr.To(false), ReadOnlyRootFilesystem: ptr.To(true),
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
	}
}

// credentials is one projected volume: a token that kubelet renews, and the CA of the endpoints.
func (c Consumer) credentials() corev1.Volume {
	connection := corev1.LocalObjectReference{Name: names.ConnectionConfigMap(c.Bucket)}
	return corev1.Volume{Name: "system-s3", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{
				Audience: names.Audience, ExpirationSeconds: ptr.To(tokenSeconds), Path: "token",
			}},
			{ConfigMap: &corev1.ConfigMapProjection{
				LocalObjectReference: connection, Items: []corev1.KeyToPath{{Key: names.CAKey, Path: names.CAKey}},
			}},
		},
	}}}
}

func (c Consumer) scratch() corev1.Volume {
	return corev1.Volume{Name: "scratch", VolumeSource: corev1.VolumeSource{
		EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: resource.NewQuantity(256<<20, resource.BinarySI)},
	}}
}
