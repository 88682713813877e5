package main

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/deckhouse/system-s3/lib/names"
	"github.com/deckhouse/system-s3/lib/plan"
)

func newValues(t *testing.T) planeValues {
	t.Helper()
	v, err := newPlaneValues()
	require.NoError(t, err)
	return v
}

// secretData is what the chart makes of the values.
func secretData(t *testing.T, v planeValues) map[string][]byte {
	t.Helper()
	data := map[string][]byte{
		names.RPCSecretKey: []byte(v.RPCSecret), names.AdminTokenKey: []byte(v.AdminToken),
		names.MetricsTokenKey: []byte(v.MetricsToken), names.SeedKey: []byte(v.Seed),
	}
	for n, encoded := range v.NodeKeys {
		key, err := base64.StdEncoding.DecodeString(encoded)
		require.NoError(t, err)
		data[names.NodeKeyKey(n)] = key
	}
	return data
}

// planned is a plan with the one plane, as the values hold it when the hook runs.
func planned(frozen string) plan.Plan {
	p := plan.Decide(plan.Cluster{
		Classes: []plan.StorageClass{{Name: "local", Default: true, Expandable: true}},
		Buckets: []plan.Bucket{{Namespace: "d8-test", Name: "one", Bytes: 10 << 30}},
	}, plan.Settings{ControlPlaneHighlyAvailable: true})
	p.Planes[0].Frozen = frozen
	return p
}

func withPlan(t *testing.T, r running, p plan.Plan) running {
	t.Helper()
	data, err := json.Marshal(p)
	require.NoError(t, err)
	var value any
	require.NoError(t, json.Unmarshal(data, &value))
	r.ValuesSet(planPath, value)
	return r
}

func publishedSecrets(t *testing.T, r running) planeValues {
	t.Helper()
	v, err := parsePlaneValues(r.ValuesGet(planesPath + ".a"))
	require.NoError(t, err)
	return v
}

func TestSecretsAreMadeOnce(t *testing.T) {
	r := withPlan(t, onHarness(t, secretsConfig(), keepSecrets), planned(""))
	r.KubeStateSet("")
	r.run()
	first := publishedSecrets(t, r)
	r.run()
	require.Equal(t, first, publishedSecrets(t, r), "made anew while the chart had not printed them yet")
	r.KubeStateSet(state(statefulSet("15Gi", factsOf(3)), planeSecret(t, first)))
	r.ValuesDelete(planesPath)
	r.run()
	require.Equal(t, first, publishedSecrets(t, r), "not read back from the Secret")
}

func TestSecretInTheClusterWins(t *testing.T) {
	r := withPlan(t, onHarness(t, secretsConfig(), keepSecrets), planned(""))
	remembered, there := newValues(t), newValues(t)
	r.ValuesSet(planesPath, map[string]any{"a": remembered})
	r.KubeStateSet(planeSecret(t, there))
	r.run()
	require.Equal(t, there, publishedSecrets(t, r))
}

func TestSecretsDeletedMeanwhileAreRemembered(t *testing.T) {
	r := withPlan(t, onHarness(t, secretsConfig(), keepSecrets), planned(""))
	remembered := newValues(t)
	r.ValuesSet(planesPath, map[string]any{"a": remembered})
	r.KubeStateSet(state(statefulSet("15Gi", factsOf(3)), claim(0, "15Gi", "Bound")))
	r.run()
	require.Equal(t, remembered, publishedSecrets(t, r), "the chart puts the Secret back")
}

func TestLostSecretsAreNeverMadeAnew(t *testing.T) {
	v := newValues(t)
	for name, objects := range map[string]string{
		"a StatefulSet is there":   statefulSet("15Gi", factsOf(3)),
		"a claim is there":         claim(0, "15Gi", "Bound"),
		"a Secret without its key": planeSecret(t, v, "rpc-secret"),
	} {
		t.Run(name, func(t *testing.T) {
			r := withPlan(t, onHarness(t, secretsConfig(), keepSecrets), planned(""))
			r.KubeStateSet(objects)
			r.RunHook()
			require.ErrorContains(t, r.HookError(), "read secrets of plane a")

			frozen := withPlan(t, onHarness(t, secretsConfig(), keepSecrets), planned("a fact is lost"))
			frozen.KubeStateSet(objects)
			frozen.run()
			require.Equal(t, "{}", frozen.ValuesGet(planesPath).Raw, "a frozen plane holds nothing up")
		})
	}
}

func TestSecretsNeedAPlan(t *testing.T) {
	r := onHarness(t, secretsConfig(), keepSecrets)
	r.KubeStateSet("")
	r.RunHook()
	require.ErrorIs(t, r.HookError(), errNoPlan)
}

func TestNewSecrets(t *testing.T) {
	v := newValues(t)
	seen := map[string]bool{}
	for _, secret := range []string{v.RPCSecret, v.AdminToken, v.MetricsToken, v.Seed} {
		raw, err := hex.DecodeString(secret)
		require.NoError(t, err)
		require.Len(t, raw, secretBytes)
		require.False(t, seen[secret])
		seen[secret] = true
	}
	require.Len(t, v.NodeKeys, nodeKeys)
	for n := range nodeKeys {
		key, err := base64.StdEncoding.DecodeString(v.NodeKeys[n])
		require.NoError(t, err)
		require.Len(t, key, 64, "32 bytes seed, 32 bytes public key")
		require.Equal(t, v.NodeIDs[n], hex.EncodeToString(key[32:]), "the node id is the public key")
	}
	checked, err := v.checked()
	require.NoError(t, err)
	require.Equal(t, v, checked)
}

func TestUnreadableSecretsAreNamedAndNotQuoted(t *testing.T) {
	const quoted = "not-to-be-quoted"
	cases := map[string]struct {
		change func(*planeValues)
		says   string
	}{
		"short":         {change: func(v *planeValues) { v.Seed = "00" }, says: "key seed"},
		"no hex":        {change: func(v *planeValues) { v.AdminToken = quoted }, says: "key admin-token"},
		"empty":         {change: func(v *planeValues) { v.RPCSecret = "" }, says: "key rpc-secret"},
		"no base64":     {change: func(v *planeValues) { v.NodeKeys[2] = quoted + "%" }, says: "key node-key-2"},
		"another's key": {change: func(v *planeValues) { v.NodeKeys[0] = v.NodeKeys[1][:40] + v.NodeKeys[2][40:] }, says: "key node-key-0"},
		"too few":       {change: func(v *planeValues) { v.NodeKeys = v.NodeKeys[:1] }, says: "1 node keys"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			v := newValues(t)
			c.change(&v)
			_, err := v.checked()
			require.ErrorContains(t, err, c.says)
			require.NotContains(t, err.Error(), quoted)
		})
	}
	_, err := parsePlaneValues(gjson.Parse(`"` + quoted + `"`))
	require.Error(t, err)
	require.NotContains(t, err.Error(), quoted)
}
