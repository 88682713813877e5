package estate_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/deckhouse/system-s3/images/controller/internal/estate"
	"github.com/deckhouse/system-s3/images/controller/internal/fixture"
	"github.com/deckhouse/system-s3/lib/names"
)

func entries(count int) []estate.Entry {
	var all []estate.Entry
	for n := range count {
		all = append(all, estate.Entry{UID: types.UID(fmt.Sprintf("uid-%d", n)), Namespace: "d8-x", Name: "logs", Bucket: "b", Store: "s"})
	}
	return all
}

func TestBookKeepsWhatItIsTold(t *testing.T) {
	t.Parallel()
	api := fixture.Builder(t).Build()
	book := &estate.Book{Reader: api, Writer: api}
	require.NoError(t, book.Put(t.Context(), entries(100)))
	changed := entries(1)
	when := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	changed[0].Gone = &when
	require.NoError(t, book.Put(t.Context(), changed))
	require.NoError(t, book.Remove(t.Context(), entries(100)[1:60]))
	got, err := book.Read(t.Context())
	require.NoError(t, err)
	require.Len(t, got, 41)
	require.Equal(t, changed[0], got["uid-0"])
	require.Equal(t, entries(100)[99], got["uid-99"])

	var found corev1.ConfigMapList
	require.NoError(t, api.List(t.Context(), &found, client.InNamespace(names.Namespace)))
	require.Greater(t, len(found.Items), 1, "one ConfigMap could not hold all of a large cluster")
	for _, part := range found.Items {
		require.Equal(t, names.Module, part.Labels[names.ModuleLabel], "so that the platform's label comes and goes with the others")
	}
}

func TestBookOfAnUnreadableEntryIsAnError(t *testing.T) {
	t.Parallel()
	api := fixture.Builder(t).WithObjects(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: names.Namespace, Name: "x", Labels: map[string]string{names.AppLabel: names.ReleasedApp}},
		Data:       map[string]string{"uid": "{"},
	}).Build()
	_, err := (&estate.Book{Reader: api, Writer: api}).Read(t.Context())
	require.ErrorContains(t, err, "uid")
}

func TestBookWithoutItsNamespace(t *testing.T) {
	t.Parallel()
	gone := apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, names.Namespace)
	going := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "x", errors.New("it is being terminated"))
	going.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	cases := map[string]struct {
		reason string
		answer error
		fails  bool
	}{
		"gone":    {"the store is gone, too", gone, false},
		"going":   {"and the store with it", going, false},
		"refused": {"what is not written down would be lost", apierrors.NewForbidden(schema.GroupResource{}, "x", nil), true},
		"silence": {"unknown is not gone", errors.New("timeout"), true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := interceptor.NewClient(fixture.Builder(t).Build(), interceptor.Funcs{
				Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return c.answer },
			})
			err := (&estate.Book{Reader: api, Writer: api}).Put(t.Context(), entries(1))
			require.Equal(t, c.fails, err != nil, c.reason)
		})
	}
}
