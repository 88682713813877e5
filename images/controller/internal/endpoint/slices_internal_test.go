package endpoint

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func buckets(from, to int) []string {
	var hosts []string
	for i := from; i < to; i++ {
		hosts = append(hosts, fmt.Sprintf("bucket-%04d", i))
	}
	return hosts
}

func ask(hosts ...string) wish {
	return wish{
		Service: &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "s3", UID: "s3-uid"}},
		Address: "10.222.0.7", Family: discoveryv1.AddressTypeIPv4, Buckets: hosts,
	}
}

// inside is the hosts of all slices, sorted; it fails when a slice is too long or an address is wrong.
func inside(t *testing.T, all []discoveryv1.EndpointSlice) []string {
	t.Helper()
	var hosts []string
	for _, slice := range all {
		require.LessOrEqual(t, len(slice.Endpoints), capacity)
		for _, endpoint := range slice.Endpoints {
			assert.Equal(t, []string{"10.222.0.7"}, endpoint.Addresses)
		}
		hosts = append(hosts, hostsOf(slice)...)
	}
	slices.Sort(hosts)
	return hosts
}

func TestPack(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason  string
		present []discoveryv1.EndpointSlice
		buckets []string
		slices  int
	}{
		"no bucket":        {"the base name always answers", nil, nil, 1},
		"some":             {"one slice holds them", nil, buckets(0, 3), 1},
		"one slice full":   {"the base name takes a place", nil, buckets(0, capacity-1), 1},
		"one more":         {"a second slice", nil, buckets(0, capacity), 2},
		"many":             {"5 000 buckets", nil, buckets(0, 5000), 51},
		"one is new":       {"it takes the free place", pack(nil, ask(buckets(0, 150)...)), buckets(0, 151), 2},
		"half are gone":    {"slices are not put together again", pack(nil, ask(buckets(0, 300)...)), buckets(150, 300), 4},
		"a slice is empty": {"it goes", pack(nil, ask(buckets(0, 300)...)), buckets(200, 300), 3},
		"all gone":         {"only the base name is left", pack(nil, ask(buckets(0, 300)...)), nil, 1},
		"twice": {"a host in two slices is kept once", append(
			pack(nil, ask("x")), renamed(pack(nil, ask("x"))[0], "s3-copy")), []string{"x"}, 1},
		"the address changed": {"all are written anew", pack(nil, wish{
			Service: &corev1.Service{}, Address: "10.0.0.1", Family: discoveryv1.AddressTypeIPv4, Buckets: buckets(0, 10),
		}), buckets(0, 10), 1},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := pack(c.present, ask(c.buckets...))
			assert.Equal(t, c.slices, len(got), c.reason) //nolint:testifylint // Len would print all of them
			assert.Equal(t, append([]string{""}, c.buckets...), inside(t, got), c.reason)
			assert.Equal(t, got, pack(got, ask(c.buckets...)), "the second pass changes nothing")
		})
	}
}

func renamed(slice discoveryv1.EndpointSlice, name string) discoveryv1.EndpointSlice {
	slice.Name = name
	return slice
}

func TestPackTouchesOneSlice(t *testing.T) {
	t.Parallel()
	before := pack(nil, ask(buckets(0, 950)...))
	after := pack(before, ask(append(buckets(0, 500), buckets(501, 951)...)...))
	changed := 0
	for i := range before {
		if !slices.Equal(hostsOf(before[i]), hostsOf(after[i])) {
			changed++
		}
	}
	require.Len(t, after, len(before))
	assert.LessOrEqual(t, changed, 2, "one lost a bucket, one got one")
}
