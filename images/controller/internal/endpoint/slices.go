// Package endpoint gives Service s3, which is headless and has no selector, its addresses: the ClusterIP of Service
// s3-gateway, once without a host name and once with the name of each bucket. DNS then answers for s3 and for
// <bucket>.s3 alike, so that clients may use both styles of S3 without any setting.
package endpoint

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/deckhouse/system-s3/lib/names"
)

const (
	// capacity is how many endpoints a slice holds: Kubernetes' own controller stops at as many.
	capacity  = 100
	managedBy = "controller.system-s3.deckhouse.io"
)

// wish is what DNS shall answer.
type wish struct {
	Service *corev1.Service // s3, the owner of the slices
	Address string          // the ClusterIP of s3-gateway
	Family  discoveryv1.AddressType
	Buckets []string // host names
}

// pack is the slices that should be. A bucket stays in the slice that has it: a new one rewrites a single slice, however
// many there are.
func pack(present []discoveryv1.EndpointSlice, w wish) []discoveryv1.EndpointSlice {
	missing := map[string]bool{"": true} // "" is the base name
	for _, bucket := range w.Buckets {
		missing[bucket] = true
	}
	hosts := map[string][]string{} // by slice
	for _, slice := range present {
		hosts[slice.Name] = nil
		for _, host := range hostsOf(slice) {
			if missing[host] && len(hosts[slice.Name]) < capacity {
				delete(missing, host)
				hosts[slice.Name] = append(hosts[slice.Name], host)
			}
		}
	}
	fill(hosts, slices.Sorted(maps.Keys(missing)))
	var wanted []discoveryv1.EndpointSlice
	for name, inside := range hosts {
		if len(inside) > 0 {
			wanted = append(wanted, build(name, inside, w))
		}
	}
	slices.SortFunc(wanted, func(a, b discoveryv1.EndpointSlice) int { return cmp.Compare(a.Name, b.Name) })
	return wanted
}

// fill puts the missing hosts into slices with room, then into new ones.
func fill(hosts map[string][]string, missing []string) {
	order := slices.Sorted(maps.Keys(hosts))
	for next := 0; len(missing) > 0; next++ {
		if next == len(order) {
			order = append(order, newName(hosts))
		}
		name := order[next]
		room := min(capacity-len(hosts[name]), len(missing))
		hosts[name] = append(hosts[name], missing[:room]...)
		missing = missing[room:]
	}
}

func newName(hosts map[string][]string) string {
	for n := 0; ; n++ {
		name := names.S3Service + "-" + strconv.Itoa(n)
		if _, taken := hosts[name]; !taken {
			return name
		}
	}
}

func hostsOf(slice discoveryv1.EndpointSlice) []string {
	hosts := make([]string, 0, len(slice.Endpoints))
	for _, endpoint := range slice.Endpoints {
		hosts = append(hosts, ptr.Deref(endpoint.Hostname, ""))
	}
	return hosts
}

func build(name string, hosts []string, w wish) discoveryv1.EndpointSlice {
	hosts = slices.Clone(hosts)
	slices.SortFunc(hosts, strings.Compare)
	slice := discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: names.Namespace, Name: name,
			Labels: map[string]string{
				discoveryv1.LabelServiceName: names.S3Service, discoveryv1.LabelManagedBy: managedBy,
				names.HeritageLabel: names.Heritage, names.ModuleLabel: names.Module,
			},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(w.Service, corev1.SchemeGroupVersion.WithKind("Service"))},
		},
		AddressType: w.Family,
		Ports: []discoveryv1.EndpointPort{{
			Name: ptr.To(names.ServingS3PortName), Port: ptr.To(int32(names.ServicePort)), Protocol: ptr.To(corev1.ProtocolTCP),
		}},
	}
	for _, host := range hosts {
		endpoint := discoveryv1.Endpoint{
			Addresses:  []string{w.Address},
			Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)},
		}
		if host != "" {
			endpoint.Hostname = ptr.To(host)
		}
		slice.Endpoints = append(slice.Endpoints, endpoint)
	}
	return slice
}
