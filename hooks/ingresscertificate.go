package main

import (
	"context"
	"errors"

	"github.com/deckhouse/module-sdk/pkg"
	objectpatch "github.com/deckhouse/module-sdk/pkg/object-patch"
	"github.com/deckhouse/module-sdk/pkg/registry"
)

const (
	// customCertificatePath is where the certificate of the status page's address is published for the chart.
	customCertificatePath   = "systemS3.internal.customCertificate"
	customCertificateSecret = "global.modules.https.customCertificate.secretName"
	customSnapshotName      = "custom"
)

// The SDK's own hook for this panics where the platform has no HTTPS mode, and publishes a certificate "<none>".
var _ = registry.RegisterFunc(customCertificateConfig(), guarded(copyCustomCertificate))

// customSnapshot is a certificate of the administrator's in d8-system.
type customSnapshot struct {
	Name string `json:"name"`
	CA   []byte `json:"ca"`
	Cert []byte `json:"cert"`
	Key  []byte `json:"key"`
}

func customCertificateConfig() *pkg.HookConfig {
	return &pkg.HookConfig{
		OnBeforeHelm: &pkg.OrderedConfig{Order: orderCertificates},
		Kubernetes: []pkg.KubernetesConfig{{
			Name:              customSnapshotName,
			APIVersion:        "v1",
			Kind:              "Secret",
			NamespaceSelector: &pkg.NamespaceSelector{NameSelector: &pkg.NameSelector{MatchNames: []string{"d8-system"}}},
			FieldSelector: &pkg.FieldSelector{MatchExpressions: []pkg.FieldSelectorRequirement{
				{Field: "type", Operator: "Equals", Value: "kubernetes.io/tls"},
			}},
			JqFilter: `{name: .metadata.name, ca: .data."ca.crt", cert: .data."tls.crt", key: .data."tls.key"}`,
		}},
	}
}

// copyCustomCertificate publishes the certificate that the administrator has chosen for all web interfaces, if one is.
func copyCustomCertificate(_ context.Context, input *pkg.HookInput) error {
	name := input.Values.Get(customCertificateSecret).String()
	if input.Values.Get("global.modules.https.mode").String() != "CustomCertificate" || name == "" {
		input.Values.Remove(customCertificatePath)
		return nil
	}
	found, err := objectpatch.UnmarshalToStruct[customSnapshot](input.Snapshots, customSnapshotName)
	if err != nil {
		return errors.New("read custom certificates: a Secret is not in base64") // the decoder's message may quote it
	}
	for _, each := range found {
		if each.Name == name {
			input.Values.Set(customCertificatePath, map[string]string{"ca": string(each.CA), "crt": string(each.Cert), "key": string(each.Key)})
			return nil
		}
	}
	input.Logger.Warn("there is no Secret " + name + " of type kubernetes.io/tls in d8-system: the status page goes without the certificate")
	input.Values.Remove(customCertificatePath)
	return nil
}
