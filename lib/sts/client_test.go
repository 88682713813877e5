package sts_test

import (
	"encoding/pem"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/lib/access"
	"github.com/deckhouse/system-s3/lib/names"
	"github.com/deckhouse/system-s3/lib/sts"
)

// environment is what a consumer's ConfigMap and projected volume give it.
func environment(t *testing.T, w *world) {
	t.Helper()
	server := httptest.NewTLSServer(w.handler())
	t.Cleanup(server.Close)
	dir := t.TempDir()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	require.NoError(t, os.WriteFile(filepath.Join(dir, "ca.crt"), ca, 0o600))
	fresh := token(t, time.Now().Add(time.Hour), names.Audience)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "token"), []byte(fresh+"\n"), 0o600))
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL_STS": server.URL, "AWS_REGION": names.Region, "AWS_ROLE_ARN": roleARN,
		"AWS_WEB_IDENTITY_TOKEN_FILE": filepath.Join(dir, "token"), "AWS_CA_BUNDLE": filepath.Join(dir, "ca.crt"),
		"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
		"AWS_EC2_METADATA_DISABLED": "true",
	} {
		t.Setenv(name, value)
	}
}

func TestGoSDKGetsAKeyFromItsDefaultConfiguration(t *testing.T) {
	w := newWorld()
	w.now = time.Now
	environment(t, w)
	loaded, err := config.LoadDefaultConfig(t.Context())
	require.NoError(t, err)
	got, err := loaded.Credentials.Retrieve(t.Context())
	require.NoError(t, err)
	require.True(t, got.CanExpire)
	require.NotEmpty(t, got.SessionToken)
	claims, secret, err := access.Ring{Keys: []access.RingKey{{ID: 1, Secret: ringSecret()}}}.Verify(got.AccessKeyID, time.Now())
	require.NoError(t, err)
	require.Equal(t, got.SecretAccessKey, secret)
	require.True(t, got.Expires.Before(claims.Expires), "a client stops using a key before gateways refuse it")
}

func TestGoSDKReadsErrors(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(*world)
		code   string
	}{
		"denied":  {reason: "final", change: func(w *world) { w.granted = 0 }, code: "AccessDenied"},
		"refused": {reason: "final", change: func(w *world) { w.reviewErr = sts.ErrTokenRefused }, code: "IDPRejectedClaim"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.now = time.Now
			c.change(w)
			environment(t, w)
			loaded, err := config.LoadDefaultConfig(t.Context())
			require.NoError(t, err)
			_, err = loaded.Credentials.Retrieve(t.Context())
			var coded smithy.APIError
			require.ErrorAs(t, err, &coded)
			require.Equal(t, c.code, coded.ErrorCode(), c.reason)
			require.Equal(t, 1, w.reviews, "not tried again")
		})
	}
}
