package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/deckhouse/module-sdk/pkg"
	"github.com/deckhouse/module-sdk/pkg/certificate"
	objectpatch "github.com/deckhouse/module-sdk/pkg/object-patch"
	"github.com/deckhouse/module-sdk/pkg/registry"

	"github.com/deckhouse/system-s3/lib/names"
)

// tlsPath is where the CA and the serving certificate are published for the chart.
const tlsPath = "systemS3.internal.tls"

const (
	caSnapshotName   = "ca"
	leafSnapshotName = "leaf"

	caLife    = 10 * 365 * 24 * time.Hour
	leafLife  = 365 * 24 * time.Hour
	leafSpare = leafLife / 4 // a certificate with less left is issued anew
)

// The SDK's own hook for internal certificates does not keep the CA's key: a new host name or the end of a certificate
// would bring a new CA, which running clients do not trust. It also gives CA and certificate one common name, which
// OpenSSL takes for a self-signed certificate.
var _ = registry.RegisterFunc(certificatesConfig(), guarded(issueCertificates))

// pairSnapshot is a certificate with its key, and for a serving certificate the CA that vouches for it.
type pairSnapshot struct {
	CA   []byte `json:"ca,omitempty"`
	Cert []byte `json:"cert"`
	Key  []byte `json:"key"`
}

// tlsValues is what the chart prints into Secrets ca and tls.
type tlsValues struct {
	CA    string `json:"ca"`
	CAKey string `json:"caKey"`
	Crt   string `json:"crt"`
	Key   string `json:"key"`
}

func certificatesConfig() *pkg.HookConfig {
	secret := func(binding, name, filter string) pkg.KubernetesConfig {
		return silent(pkg.KubernetesConfig{
			Name:              binding,
			APIVersion:        "v1",
			Kind:              "Secret",
			NamespaceSelector: &pkg.NamespaceSelector{NameSelector: &pkg.NameSelector{MatchNames: []string{names.Namespace}}},
			NameSelector:      &pkg.NameSelector{MatchNames: []string{name}},
			JqFilter:          filter,
		})
	}
	return &pkg.HookConfig{
		OnBeforeHelm: &pkg.OrderedConfig{Order: orderCertificates},
		Schedule:     []pkg.ScheduleConfig{{Name: "renewal", Crontab: "42 4 * * *"}},
		Kubernetes: []pkg.KubernetesConfig{
			secret(caSnapshotName, names.CASecret, `{cert: .data."ca.crt", key: .data."ca.key"}`),
			secret(leafSnapshotName, names.TLSSecret, `{ca: .data."ca.crt", cert: .data."tls.crt", key: .data."tls.key"}`),
		},
	}
}

// issueCertificates publishes the CA, made once and kept for good, and a serving certificate of it, made anew when its
// end is near or a host name is missing.
func issueCertificates(_ context.Context, input *pkg.HookInput) error {
	known := tlsValues{
		CA:    input.Values.Get(tlsPath + ".ca").String(),
		CAKey: input.Values.Get(tlsPath + ".caKey").String(),
		Crt:   input.Values.Get(tlsPath + ".crt").String(),
		Key:   input.Values.Get(tlsPath + ".key").String(),
	}
	ca, err := kept(input, caSnapshotName, pairSnapshot{Cert: []byte(known.CA), Key: []byte(known.CAKey)})
	if err != nil {
		return err
	}
	leaf, err := kept(input, leafSnapshotName, pairSnapshot{CA: []byte(known.CA), Cert: []byte(known.Crt), Key: []byte(known.Key)})
	if err != nil {
		return err
	}
	now := input.DC.GetClock().Now()
	authority, err := authorityOf(ca, func() bool { return serves(leaf, leaf.CA, now) })
	if errors.Is(err, errUnusableCA) {
		// What is served is good until its end; a failing hook would hold up the whole platform.
		input.Logger.Warn(err.Error())
		input.Values.Set(tlsPath, tlsValues{CA: string(leaf.CA), CAKey: string(ca.Key), Crt: string(leaf.Cert), Key: string(leaf.Key)})
		return nil
	}
	if err != nil {
		return err
	}
	if leaf, err = serving(input, authority, leaf); err != nil {
		return err
	}
	input.Values.Set(tlsPath, tlsValues{CA: string(authority.Cert), CAKey: string(authority.Key), Crt: string(leaf.Cert), Key: string(leaf.Key)})
	return nil
}

var errUnusableCA = fmt.Errorf("secret %s/%s holds no usable CA, so the serving certificate cannot be renewed: restore it from a backup, or delete it together with Secret %s to have a new CA made, which every consumer must then be restarted to trust",
	names.Namespace, names.CASecret, names.TLSSecret)

// authorityOf is the CA of the pair, or a new one where there is none. A new one locks out every client that trusts the
// old, so a broken CA is replaced only when what it vouched for cannot be served either; else the error is errUnusableCA.
func authorityOf(ca pairSnapshot, served func() bool) (*certificate.Authority, error) {
	if _, err := tls.X509KeyPair(ca.Cert, ca.Key); err == nil {
		return &certificate.Authority{Cert: ca.Cert, Key: ca.Key}, nil
	}
	if served() {
		return nil, errUnusableCA
	}
	made, err := certificate.GenerateCA(names.Module+"-ca", certificate.WithCAExpiry(caLife))
	if err != nil {
		return nil, fmt.Errorf("make the CA: %w", err)
	}
	return made, nil
}

// serving is the certificate that there is, or a new one when it is time.
func serving(input *pkg.HookInput, ca *certificate.Authority, leaf pairSnapshot) (pairSnapshot, error) {
	wanted := hosts(input)
	why := outdated(leaf, ca.Cert, wanted, input.DC.GetClock().Now())
	if why == "" {
		return leaf, nil
	}
	input.Logger.Info("issuing the serving certificate: " + why)
	issued, err := certificate.GenerateSelfSignedCert(names.Module, ca,
		certificate.WithSANs(wanted...),
		certificate.WithSigningDefaultExpiry(leafLife),
		certificate.WithSigningDefaultUsage([]string{"signing", "key encipherment", "server auth"}),
	)
	if err != nil {
		return pairSnapshot{}, fmt.Errorf("issue the serving certificate: %w", err)
	}
	return pairSnapshot{Cert: issued.Cert, Key: issued.Key}, nil
}

// kept is the pair in the snapshot, else the one in the values.
func kept(input *pkg.HookInput, snapshot string, known pairSnapshot) (pairSnapshot, error) {
	found, err := objectpatch.UnmarshalToStruct[pairSnapshot](input.Snapshots, snapshot)
	if err != nil {
		return pairSnapshot{}, errors.New("read certificates: a Secret is not in base64") // the decoder's message may quote it
	}
	if len(found) > 0 {
		return found[0], nil
	}
	return known, nil
}

// outdated tells why the certificate must be issued anew; empty when it need not.
func outdated(leaf pairSnapshot, ca []byte, wanted []string, now time.Time) string {
	if !serves(leaf, ca, now) {
		return "there is none that the CA vouches for"
	}
	cert, err := certificate.ParseCertificate(leaf.Cert)
	switch {
	case err != nil:
		return "it cannot be read"
	case cert.NotAfter.Sub(now) < leafSpare:
		return "its end is near"
	case !slices.Equal(slices.Sorted(slices.Values(cert.DNSNames)), slices.Sorted(slices.Values(wanted))):
		return "the host names changed"
	}
	return ""
}

// serves tells whether clients that trust the CA accept the certificate now.
func serves(leaf pairSnapshot, ca []byte, now time.Time) bool {
	if _, err := tls.X509KeyPair(leaf.Cert, leaf.Key); err != nil {
		return false
	}
	cert, err := certificate.ParseCertificate(leaf.Cert)
	if err != nil {
		return false
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	_, err = cert.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now})
	return err == nil
}

// hosts are the names that clients use, with and without the cluster's domain; the wildcard is for virtual-host style.
func hosts(input *pkg.HookInput) []string {
	base := []string{
		names.S3Host,
		"*." + names.S3Host,
		names.STSHost,
		names.PageHost,
		names.GatewayService + "." + names.Namespace + ".svc",
	}
	domain := input.Values.Get("global.discovery.clusterDomain").String()
	if domain == "" {
		return base
	}
	all := base
	for _, host := range base {
		all = append(all, host+"."+domain)
	}
	return all
}
