package kube_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	kubetesting "k8s.io/client-go/testing"
	ctrlfake "sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/deckhouse/system-s3/lib/access"
	"github.com/deckhouse/system-s3/lib/api/v1alpha1"
	"github.com/deckhouse/system-s3/lib/kube"
	"github.com/deckhouse/system-s3/lib/names"
	"github.com/deckhouse/system-s3/lib/sts"
)

// Reviews and Buckets are what the STS endpoint asks for.
var (
	_ sts.TokenReviewer = (*kube.Reviews)(nil)
	_ sts.Authorizer    = (*kube.Reviews)(nil)
	_ sts.Buckets       = kube.Buckets{}
)

var errDown = errors.New("connection refused")

func reviewer(status authenticationv1.TokenReviewStatus, err error) (*kube.Reviews, *[]authenticationv1.TokenReviewSpec) {
	client := fake.NewClientset()
	specs := &[]authenticationv1.TokenReviewSpec{}
	client.PrependReactor("create", "tokenreviews", func(action kubetesting.Action) (bool, runtime.Object, error) {
		review := action.(kubetesting.CreateAction).GetObject().(*authenticationv1.TokenReview) //nolint:forcetypeassert // the reactor's resource
		*specs = append(*specs, review.Spec)
		return true, &authenticationv1.TokenReview{Status: status}, err
	})
	return kube.ReviewsOf(client), specs
}

func TestReview(t *testing.T) {
	good := authenticationv1.TokenReviewStatus{
		Authenticated: true, Audiences: []string{names.Audience},
		User: authenticationv1.UserInfo{
			Username: "system:serviceaccount:d8-app:app", UID: "1", Groups: []string{"system:serviceaccounts"},
			Extra: map[string]authenticationv1.ExtraValue{"authentication.kubernetes.io/pod-name": {"app-0"}},
		},
	}
	cases := map[string]struct {
		reason string
		status authenticationv1.TokenReviewStatus
		err    error
		want   sts.Identity
		is     error
	}{
		"good": {reason: "everything is passed on", status: good, want: sts.Identity{
			Username: good.User.Username, UID: "1", Groups: good.User.Groups, Audiences: good.Audiences,
			Extra: map[string][]string{"authentication.kubernetes.io/pod-name": {"app-0"}},
		}},
		"refused": {reason: "final", status: authenticationv1.TokenReviewStatus{Error: "expired"}, is: sts.ErrTokenRefused},
		"down":    {reason: "nothing is known", err: errDown, is: errDown},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			reviews, specs := reviewer(c.status, c.err)
			got, err := reviews.Review(t.Context(), "the token")
			require.ErrorIs(t, err, c.is, c.reason)
			require.Equal(t, c.want, got, c.reason)
			require.Equal(t, []authenticationv1.TokenReviewSpec{{Token: "the token", Audiences: []string{names.Audience}}}, *specs)
		})
	}
}

func TestAuthorize(t *testing.T) {
	id := sts.Identity{
		Username: "system:serviceaccount:d8-app:app", UID: "1", Groups: []string{"g"}, Extra: map[string][]string{"k": {"v"}},
	}
	cases := map[string]struct {
		reason  string
		role    access.Role
		granted map[string]bool // by subresource
		err     error
		want    access.Permission
		asked   int
		fails   bool
	}{
		"both":         {reason: "without a suffix RBAC decides", role: role(0), granted: map[string]bool{"read": true, "write": true}, want: access.ReadWrite, asked: 2},
		"read of both": {reason: "without a suffix RBAC decides", role: role(0), granted: map[string]bool{"read": true}, want: access.Read, asked: 2},
		"none":         {reason: "no error", role: role(0), asked: 2},
		"only read":    {reason: "the other is not asked for", role: role(access.Read), granted: map[string]bool{"read": true, "write": true}, want: access.Read, asked: 1},
		"only write":   {reason: "write does not imply read", role: role(access.Write), granted: map[string]bool{"write": true}, want: access.Write, asked: 1},
		"down":         {reason: "nothing is known", role: role(access.Read), err: errDown, asked: 1, fails: true},
		"no name":      {reason: "would ask about all of them", role: access.Role{Namespace: "d8-app"}, fails: true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset()
			asked := make(chan authorizationv1.SubjectAccessReviewSpec, 2)
			client.PrependReactor("create", "subjectaccessreviews", func(action kubetesting.Action) (bool, runtime.Object, error) {
				review := action.(kubetesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview) //nolint:forcetypeassert // the reactor's resource
				asked <- review.Spec
				allowed := c.granted[review.Spec.ResourceAttributes.Subresource]
				return true, &authorizationv1.SubjectAccessReview{Status: authorizationv1.SubjectAccessReviewStatus{
					Allowed: allowed, EvaluationError: "a role that is missing",
				}}, c.err
			})
			got, err := kube.ReviewsOf(client).Authorize(t.Context(), id, c.role)
			require.Equal(t, c.fails, err != nil, c.reason)
			require.Equal(t, c.want, got, c.reason)
			require.Len(t, asked, c.asked, c.reason)
			close(asked)
			for spec := range asked {
				what := spec.ResourceAttributes
				require.Equal(t, authorizationv1.ResourceAttributes{
					Namespace: "d8-app", Name: "data", Verb: "get", Group: "storage.deckhouse.io", Version: "v1alpha1",
					Resource: "systembuckets", Subresource: what.Subresource,
				}, *what)
				require.Equal(t, id.Username, spec.User)
				require.Equal(t, id.UID, spec.UID)
				require.Equal(t, id.Groups, spec.Groups)
				require.Equal(t, map[string]authorizationv1.ExtraValue{"k": {"v"}}, spec.Extra)
			}
		})
	}
}

func role(p access.Permission) access.Role {
	return access.Role{Namespace: "d8-app", Name: "data", Permission: p}
}

func TestBucket(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	now := metav1.NewTime(time.Now())
	live := &v1alpha1.SystemBucket{ObjectMeta: metav1.ObjectMeta{Namespace: "d8-app", Name: "data", UID: "uid-1"}}
	leaving := &v1alpha1.SystemBucket{ObjectMeta: metav1.ObjectMeta{
		Namespace: "d8-app", Name: "leaving", UID: "uid-2", DeletionTimestamp: &now, Finalizers: []string{names.Finalizer},
	}}
	buckets := kube.Buckets{Reader: ctrlfake.NewClientBuilder().WithScheme(scheme).WithObjects(live, leaving).Build()}

	got, err := buckets.Bucket(t.Context(), "d8-app", "data")
	require.NoError(t, err)
	require.Equal(t, names.Bucket("d8-app", "data", "uid-1"), got)

	for name, why := range map[string]string{"missing": "never was", "leaving": "its data is going"} {
		_, err := buckets.Bucket(t.Context(), "d8-app", name)
		require.ErrorIs(t, err, sts.ErrNoBucket, why)
	}

	unknown := kube.Buckets{Reader: ctrlfake.NewClientBuilder().WithScheme(runtime.NewScheme()).Build()}
	_, err = unknown.Bucket(t.Context(), "d8-app", "data")
	require.Error(t, err)
	require.NotErrorIs(t, err, sts.ErrNoBucket, "nothing is known")
}

func TestClientOfItsOwn(t *testing.T) {
	shared := &rest.Config{Host: "https://127.0.0.1:1", QPS: 5}
	_, err := kube.NewReviews(shared, kube.Unlimited())
	require.NoError(t, err)
	require.InDelta(t, 5, shared.QPS, 0, "the controller's own limits stay")
}
