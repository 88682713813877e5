package main

import (
	"encoding/base64"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// webCertificates are two Secrets of the administrator's.
func webCertificates() string {
	encoded := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	one := "apiVersion: v1\nkind: Secret\nmetadata: {name: %s, namespace: d8-system}\ntype: kubernetes.io/tls\ndata: {tls.crt: %s, tls.key: %s}"
	return state(
		fmt.Sprintf(one, "wildcard", encoded("the certificate"), encoded("the key")),
		fmt.Sprintf(one, "other", encoded("another certificate"), encoded("another key")),
	)
}

func TestCustomCertificate(t *testing.T) {
	cases := map[string]struct {
		reason, mode, secret string
		want                 string
	}{
		"chosen":       {"the chart prints it", "CustomCertificate", "wildcard", `{"ca":"","crt":"the certificate","key":"the key"}`},
		"another mode": {"cert-manager makes one", "CertManager", "wildcard", ""},
		"no mode":      {"a platform without HTTPS settings is no error", "", "", ""},
		"none chosen":  {"nothing to copy", "CustomCertificate", "", ""},
		"missing":      {"a certificate that is not there holds nothing up", "CustomCertificate", "gone", ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := onHarness(t, customCertificateConfig(), copyCustomCertificate)
			if c.mode != "" {
				r.ValuesSet("global.modules.https.mode", c.mode)
			}
			if c.secret != "" {
				r.ValuesSet(customCertificateSecret, c.secret)
			}
			r.ValuesSet(customCertificatePath, map[string]string{"crt": "of before", "key": "of before"})
			r.KubeStateSet(webCertificates())
			r.run()
			got := r.ValuesGet(customCertificatePath)
			if c.want == "" {
				require.False(t, got.Exists(), c.reason)
				return
			}
			require.JSONEq(t, c.want, got.Raw, c.reason)
		})
	}
}
