package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhouse/system-s3/lib/api/v1alpha1"
	"github.com/deckhouse/system-s3/lib/garage"
	"github.com/deckhouse/system-s3/lib/names"
	"github.com/deckhouse/system-s3/tests/demo/stage"
)

// admin is Garage's admin API of some replica, asked as the controller asks.
func admin(ctx context.Context) (*garage.Client, error) {
	secrets := map[string]*corev1.Secret{names.GarageObject(plane): {}, names.TLSSecret: {}}
	for name, secret := range secrets {
		if err := site.Admin.Get(ctx, client.ObjectKey{Namespace: names.Namespace, Name: name}, secret); err != nil {
			return nil, fmt.Errorf("read Secret %s: %w", name, err)
		}
	}
	byNode, err := replicas(ctx)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(secrets[names.TLSSecret].Data[names.CAKey])
	for _, pod := range byNode {
		address := net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(names.GatewayAdminPort))
		return garage.New("https://"+address, string(secrets[names.GarageObject(plane)].Data[names.AdminTokenKey]), &http.Client{
			Timeout: shortLimit,
			Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{
				RootCAs: pool, MinVersion: tls.VersionTLS12, ServerName: names.GatewayService + "." + names.Namespace + ".svc",
			}},
		}), nil
	}
	return nil, fmt.Errorf("no replica of Garage is ready")
}

// bucketID is the id of the SystemBucket's bucket in Garage.
func bucketID(t *testing.T, name string) string {
	t.Helper()
	bucket, _, err := site.ReadBucket(t.Context(), client.ObjectKey{Namespace: namespace, Name: name})
	require.NoError(t, err)
	require.NotEmpty(t, bucket.Status.BucketID)
	return bucket.Status.BucketID
}

func (s *leaving) remember(t *testing.T, name string) {
	t.Helper()
	if s.orphans == nil {
		s.orphans = map[string]string{}
	}
	s.orphans[name] = bucketID(t, name)
}

// fillsSpare makes a bucket that is deleted while the module is away, with an object in it.
func (s *leaving) fillsSpare(t *testing.T) {
	t.Helper()
	name := newBucket(t, "spare", "100Mi")
	allowBucket(t, "spare", "spare", names.ReadSubresource, names.WriteSubresource)
	d := s.door(t)
	require.NoError(t, put(t.Context(), d.s3(d.of("spare", "spare", "")), name, leavingObject, s.content))
	s.remember(t, "spare")
}

func (s *leaving) deletesWhileAway(t *testing.T) {
	spare := &v1alpha1.SystemBucket{}
	spare.Namespace, spare.Name = namespace, "spare"
	require.NoError(t, site.Admin.Delete(t.Context(), spare))
	require.NoError(t, site.Await(t.Context(), stage.Wish{What: "the SystemBucket to go", Limit: shortLimit, Look: absent(
		client.ObjectKeyFromObject(spare), &v1alpha1.SystemBucket{})}))
}

// deletesWhatIsLeft waits until the buckets of SystemBuckets that were deleted while the module was away are gone, while
// the others are all there.
func (s *leaving) deletesWhatIsLeft(t *testing.T) {
	ctx := t.Context()
	require.NotEmpty(t, s.orphans)
	require.NoError(t, site.Await(ctx, stage.Wish{What: "buckets without SystemBuckets to be deleted", Limit: storeLimit, Look: func(ctx context.Context) (bool, string, error) {
		api, err := admin(ctx)
		if err != nil {
			return false, "", err
		}
		for name, id := range s.orphans {
			found, err := api.GetBucketByID(ctx, id)
			if !garage.IsAbsent(err) {
				return false, fmt.Sprintf("the bucket of %s is there with %d objects", name, found.Objects), err
			}
		}
		return true, fmt.Sprintf("%d buckets are gone", len(s.orphans)), nil
	}}))
	s.orphans = nil
	s.readsBack(t)
}
