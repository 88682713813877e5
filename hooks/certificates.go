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

// pairSnapshot is a certificate with its key.
type pairSnapshot struct {
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
			secret(leafSnapshotName, names.TLSSecret, `{cert: .data."tls.crt", key: .data."tls.key"}`),
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
	ca, err := authority(input, known)
	if err != nil {
		return err
	}
	leaf, err := kept(input, leafSnapshotName, pairSnapshot{Cert: []byte(known.Crt), Key: []byte(known.Key)})
	if err != nil {
		return err
	}
	wanted := hosts(input)
	if why := outdated(leaf, ca.Cert, wanted, input.DC.GetClock().Now()); why != "" {
		input.Logger.Info("issuing the serving certificate: " + why)
		issued, err := certificate.GenerateSelfSignedCert(names.Module, ca,
			certificate.WithSANs(wanted...),
			certificate.WithSigningDefaultExpiry(leafLife),
			certificate.WithSigningDefaultUsage([]string{"signing", "key encipherment", "server auth"}),
		)
		if err != nil {
			return fmt.Errorf("issue the serving certificate: %w", err)
		}
		leaf = pairSnapshot{Cert: issued.Cert, Key: issued.Key}
	}
	input.Values.Set(tlsPath, tlsValues{CA: string(ca.Cert), CAKey: string(ca.Key), Crt: string(leaf.Cert), Key: string(leaf.Key)})
	return nil
}

// authority is the CA of the Secret, else of the values, else a new one. One that exists and cannot be used is an
// error: a new one would lock out every client that trusts the old.
func authority(input *pkg.HookInput, known tlsValues) (*certificate.Authority, error) {
	pair, err := kept(input, caSnapshotName, pairSnapshot{Cert: []byte(known.CA), Key: []byte(known.CAKey)})
	if err != nil {
		return nil, err
	}
	if len(pair.Cert) == 0 && len(pair.Key) == 0 {
		made, err := certificate.GenerateCA(names.Module+"-ca", certificate.WithCAExpiry(caLife))
		if err != nil {
			return nil, fmt.Errorf("make the CA: %w", err)
		}
		return made, nil
	}
	if _, err := tls.X509KeyPair(pair.Cert, pair.Key); err != nil {
		return nil, fmt.Errorf("secret %s/%s holds no usable CA: restore it from a backup, or delete it to have a new CA made, which every consumer must then be restarted to trust",
			names.Namespace, names.CASecret)
	}
	return &certificate.Authority{Cert: pair.Cert, Key: pair.Key}, nil
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
	pair, err := tls.X509KeyPair(leaf.Cert, leaf.Key)
	if err != nil {
		return "there is none that can be used"
	}
	cert, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		return "it cannot be read"
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	if _, err := cert.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now}); err != nil {
		return "the CA does not vouch for it"
	}
	if cert.NotAfter.Sub(now) < leafSpare {
		return "its end is near"
	}
	if !slices.Equal(slices.Sorted(slices.Values(cert.DNSNames)), slices.Sorted(slices.Values(wanted))) {
		return "the host names changed"
	}
	return ""
}

// hosts are the names that clients use, with and without the cluster's domain; the wildcard is for virtual-host style.
func hosts(input *pkg.HookInput) []string {
	base := []string{
		names.S3Host,
		"*." + names.S3Host,
		names.STSHost,
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
