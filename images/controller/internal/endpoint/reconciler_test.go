package endpoint_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/deckhouse/system-s3/images/controller/internal/endpoint"
	"github.com/deckhouse/system-s3/images/controller/internal/fixture"
	"github.com/deckhouse/system-s3/lib/api/v1alpha1"
	"github.com/deckhouse/system-s3/lib/names"
)

func service(name, address string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: names.Namespace, Name: name, UID: "uid-of-" + "x"},
		Spec:       corev1.ServiceSpec{ClusterIP: address},
	}
}

func systemBucket(name, inS3 string) *v1alpha1.SystemBucket {
	return &v1alpha1.SystemBucket{
		ObjectMeta: metav1.ObjectMeta{Namespace: "d8-demo", Name: name},
		Status:     v1alpha1.SystemBucketStatus{BucketName: inS3},
	}
}

func written(t *testing.T, c client.Client) []discoveryv1.EndpointSlice {
	t.Helper()
	_, err := (&endpoint.Reconciler{Client: c}).Reconcile(t.Context(), reconcile.Request{})
	require.NoError(t, err)
	var list discoveryv1.EndpointSliceList
	require.NoError(t, c.List(t.Context(), &list, client.InNamespace(names.Namespace)))
	return list.Items
}

func TestReconcile(t *testing.T) {
	t.Parallel()
	foreign := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: names.Namespace, Name: "foreign", Labels: map[string]string{discoveryv1.LabelServiceName: "s3"}},
		AddressType: discoveryv1.AddressTypeIPv4,
	}
	c := fixture.Builder(t).WithObjects(
		service("s3", corev1.ClusterIPNone), systemBucket("named", "d8-demo-named-abc"), systemBucket("nameless", ""), foreign,
	).Build()
	assert.Len(t, written(t, c), 1, "without s3-gateway there is no address")

	require.NoError(t, c.Create(t.Context(), service("s3-gateway", "")))
	assert.Len(t, written(t, c), 1, "the address is not given yet")

	gateway := service("s3-gateway", "")
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(gateway), gateway))
	gateway.Spec.ClusterIP = "10.222.0.7"
	require.NoError(t, c.Update(t.Context(), gateway))
	slices := written(t, c)
	require.Len(t, slices, 2)
	ours := slices[1]
	assert.Equal(t, "s3-0", ours.Name)
	require.Len(t, ours.Endpoints, 2)
	assert.Nil(t, ours.Endpoints[0].Hostname)
	assert.Equal(t, "d8-demo-named-abc", *ours.Endpoints[1].Hostname)
	assert.Equal(t, []string{"10.222.0.7"}, ours.Endpoints[1].Addresses)
	assert.EqualValues(t, 443, *ours.Ports[0].Port)
	assert.Equal(t, "s3", ours.Labels[discoveryv1.LabelServiceName])
	assert.Equal(t, "s3", ours.OwnerReferences[0].Name)

	assert.Equal(t, ours.ResourceVersion, written(t, c)[1].ResourceVersion, "a quiet pass writes nothing")

	gateway.Spec.ClusterIP = "fd00::7"
	require.NoError(t, c.Update(t.Context(), gateway))
	slices = written(t, c)
	require.Len(t, slices, 2, "the family of a slice never changes: the old one goes")
	assert.Equal(t, discoveryv1.AddressTypeIPv6, slices[1].AddressType)
}
