package bucket

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhouse/system-s3/lib/api/v1alpha1"
	"github.com/deckhouse/system-s3/lib/names"
)

// parameters is the content of the ConfigMap with the connection parameters: what SDKs read as environment, and the CA.
// Node.js and rclone have variables of their own for a CA; others find it by AWS_CA_BUNDLE. SSL_CERT_FILE stays unsaid:
// it would take the trust in every other CA from a consumer.
func parameters(sb *v1alpha1.SystemBucket, bucketName, ca string) map[string]string {
	return map[string]string{
		"AWS_ENDPOINT_URL_S3":         names.S3URL,
		"AWS_ENDPOINT_URL_STS":        names.STSURL,
		"AWS_REGION":                  names.Region,
		"AWS_DEFAULT_REGION":          names.Region,
		"AWS_ROLE_ARN":                names.RoleARN(sb.Namespace, sb.Name),
		"AWS_WEB_IDENTITY_TOKEN_FILE": names.ConsumerTokenFile,
		"AWS_CA_BUNDLE":               names.ConsumerCAFile,
		"NODE_EXTRA_CA_CERTS":         names.ConsumerCAFile,
		"RCLONE_CA_CERT":              names.ConsumerCAFile,
		"BUCKET_NAME":                 bucketName,
		names.CAKey:                   ca,
	}
}

// publish makes the ConfigMap say what is given. A ConfigMap of that name that belongs to somebody else is left alone.
func (r *Reconciler) publish(ctx context.Context, sb *v1alpha1.SystemBucket, data map[string]string) error {
	key := client.ObjectKey{Namespace: sb.Namespace, Name: names.ConnectionConfigMap(sb.Name)}
	wanted := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: key.Namespace, Name: key.Name,
			Labels:          map[string]string{names.HeritageLabel: names.Heritage, names.ModuleLabel: names.Module},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(sb, v1alpha1.GroupVersion.WithKind(names.Kind))},
		},
		Data: data,
	}
	var present corev1.ConfigMap
	err := r.Client.Get(ctx, key, &present)
	if apierrors.IsNotFound(err) {
		return r.create(ctx, wanted)
	}
	if err != nil {
		return fmt.Errorf("read ConfigMap %s: %w", key, err)
	}
	if isForeign(&present, sb) {
		return foreignError(key)
	}
	changed := present.DeepCopy()
	changed.Data, changed.BinaryData = wanted.Data, nil
	if changed.Labels == nil {
		changed.Labels = map[string]string{}
	}
	maps.Copy(changed.Labels, wanted.Labels)
	if !metav1.IsControlledBy(changed, sb) {
		changed.OwnerReferences = slices.Concat(slices.DeleteFunc(changed.OwnerReferences, isController), wanted.OwnerReferences)
	}
	if same(&present, changed) {
		return nil
	}
	if err := r.Client.Update(ctx, changed); err != nil {
		return fmt.Errorf("write ConfigMap %s: %w", key, err)
	}
	return nil
}

// isForeign tells whether the ConfigMap belongs to somebody else. One of an earlier SystemBucket of the same name, which
// the garbage collector has not reached yet, is taken over.
func isForeign(present *corev1.ConfigMap, sb *v1alpha1.SystemBucket) bool {
	owner := metav1.GetControllerOf(present)
	if owner == nil || owner.UID == sb.UID {
		return false
	}
	return owner.Kind != names.Kind || owner.Name != sb.Name
}

func isController(reference metav1.OwnerReference) bool {
	return reference.Controller != nil && *reference.Controller
}

// create makes the ConfigMap. The cache shows only those with our label, so one that exists in spite of it is foreign.
func (r *Reconciler) create(ctx context.Context, wanted *corev1.ConfigMap) error {
	err := r.Client.Create(ctx, wanted)
	if apierrors.IsAlreadyExists(err) {
		return foreignError(client.ObjectKeyFromObject(wanted))
	}
	if err != nil {
		return fmt.Errorf("create ConfigMap %s/%s: %w", wanted.Namespace, wanted.Name, err)
	}
	return nil
}

// errForeign tells that the name of the ConfigMap is taken.
var errForeign = errors.New("exists and does not belong to this SystemBucket; rename or delete it")

func foreignError(key client.ObjectKey) error { return fmt.Errorf("ConfigMap %s %w", key, errForeign) }

func same(a, b *corev1.ConfigMap) bool {
	return maps.Equal(a.Data, b.Data) && len(a.BinaryData) == 0 && maps.Equal(a.Labels, b.Labels) &&
		equality.Semantic.DeepEqual(a.OwnerReferences, b.OwnerReferences)
}
