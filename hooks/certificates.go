package main

import (
	tlscertificate "github.com/deckhouse/module-sdk/common-hooks/tls-certificate"
	"github.com/deckhouse/module-sdk/pkg"
	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/deckhouse/system-s3/lib/names"
)

var _ = tlscertificate.RegisterInternalTLSHookEM(certificateConf())

// certificateConf is the one certificate of the controller and of the gateways, of a CA that lives with the namespace.
func certificateConf() tlscertificate.GenSelfSignedTLSHookConf {
	return tlscertificate.GenSelfSignedTLSHookConf{
		SANs:                 hosts,
		CN:                   names.Module,
		Namespace:            names.Namespace,
		TLSSecretName:        names.TLSSecret,
		Usages:               []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageServerAuth},
		FullValuesPathPrefix: "systemS3.internal.tls",
	}
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
