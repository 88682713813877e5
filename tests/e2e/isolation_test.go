package e2e

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhouse/system-s3/lib/names"
	"github.com/deckhouse/system-s3/tests/demo/consumer"
	"github.com/deckhouse/system-s3/tests/demo/stage"
)

// The other namespace: with a bucket of the same name, and with one whose name in S3 reads like one of the tests' own
// (d8-e2e + x-data and d8-e2e-x + data).
const (
	foreign   = namespace + "-x"
	twin      = "x-data"
	twinOther = "data"
)

// tally counts what was tried and what got through.
type tally struct {
	marker   string // the content of what must not be seen
	attempts int
	leaks    []string
	broken   []string // attempts that were not refused but failed: they prove nothing
}

// note judges one answer: it must be a refusal, and not a word of the content in it.
func (y *tally) note(what string, status int, body string, err error) {
	y.attempts++
	switch {
	case err != nil || strings.Contains(body, "ExpiredToken"):
		y.broken = append(y.broken, fmt.Sprintf("%s: %v", what, err))
	case strings.Contains(body, y.marker), status < http.StatusMultipleChoices:
		y.leaks = append(y.leaks, fmt.Sprintf("%s: %d %.200s", what, status, body))
	case status >= http.StatusInternalServerError && status != http.StatusNotImplemented:
		y.broken = append(y.broken, fmt.Sprintf("%s: %d %.200s", what, status, body))
	}
}

func (y *tally) report(t *testing.T, what string, before int) {
	t.Helper()
	t.Logf("%s: %d attempts", what, y.attempts-before)
}

// vault is a bucket that nobody of the attackers may use, and its owner.
type vault struct {
	bucket string // in S3
	owner  aws.CredentialsProvider
}

// isolates tries every way from one bucket to another, from one right to the next and past the gateway.
func (s *story) isolates(t *testing.T) {
	ctx := t.Context()
	d := s.door(t)
	vaults := s.vaults(t, d)
	y := &tally{marker: "marker-" + rand.Text()}
	for _, v := range vaults {
		require.NoError(t, put(ctx, d.s3(v.owner), v.bucket, "secret", []byte(y.marker)))
	}
	allow(t, "host", names.ReadSubresource, names.WriteSubresource)
	allow(t, "reader", names.ReadSubresource)
	allow(t, "writer", names.WriteSubresource)
	own := bucketName(t, mainBucket)
	require.NoError(t, put(ctx, d.s3(d.of("host", mainBucket, "")), own, "isolation/own", []byte(y.marker)))

	a := attacker{story: s, door: d, tally: y, vaults: vaults, own: own, keys: map[string]aws.CredentialsProvider{}}
	a.proveWeapons(t)
	for _, part := range []struct {
		what string
		try  func(a attacker, t *testing.T)
	}{
		{"a key of one bucket on another", attacker.crossBuckets},
		{"copies from another bucket", attacker.copyAcross},
		{"a form for another bucket", attacker.postAcross},
		{"paths and hosts that read in two ways", attacker.confuse},
		{"forged, cut and flipped keys", attacker.forge},
		{"read that writes, write that reads", attacker.overreach},
		{"tokens that are not for it", attacker.misuseTokens},
	} {
		before := y.attempts
		part.try(a, t)
		y.report(t, part.what, before)
	}
	before := y.attempts
	s.tryPorts(t, y)
	y.report(t, "ports of Garage and of the gateway from a foreign Pod", before)

	t.Logf("isolation: %d attempts, %d leaks", y.attempts, len(y.leaks))
	require.Empty(t, y.leaks)
	require.Empty(t, y.broken, "refused, not failed")
	for _, v := range vaults {
		s.isUntouched(t, d, v, y.marker)
	}
	content, err := get(ctx, d.s3(d.of("host", mainBucket, "")), own, "isolation/own")
	require.NoError(t, err)
	require.Equal(t, y.marker, string(content))
}

// vaults makes the buckets that the attackers want: one in the tests' namespace, and in another namespace one of the
// same name as the attackers' own and one whose S3 name begins like that of the first.
func (s *story) vaults(t *testing.T, d door) []vault {
	t.Helper()
	ctx := t.Context()
	require.NoError(t, site.Namespace(ctx, foreign))
	var vaults []vault
	for _, key := range []client.ObjectKey{{Namespace: namespace, Name: twin}, {Namespace: foreign, Name: twinOther}, {Namespace: foreign, Name: mainBucket}} {
		require.NoError(t, site.Bucket(ctx, key, "50Mi"))
		require.NoError(t, site.AwaitBucket(ctx, key, moduleLimit))
		bucket, _, err := site.ReadBucket(ctx, key)
		require.NoError(t, err)
		c := consumer.Consumer{Name: "owner", Namespace: key.Namespace, Bucket: key.Name}
		require.NoError(t, c.ServiceAccount(ctx, site.Admin))
		require.NoError(t, c.Allow(ctx, site.Admin, names.ReadSubresource, names.WriteSubresource))
		owner := d.provider(names.RoleARN(key.Namespace, key.Name), identity{door: d, account: "owner", namespace: key.Namespace, audience: names.Audience})
		require.NoError(t, site.Await(ctx, stage.Wish{What: "a key of " + key.String(), Limit: shortLimit, Look: func(ctx context.Context) (bool, string, error) {
			_, err := owner.Retrieve(ctx)
			return err == nil, code(err), nil
		}}))
		vaults = append(vaults, vault{bucket: bucket.Status.BucketName, owner: aws.NewCredentialsCache(owner, lively)})
	}
	near, far := vaults[0].bucket, vaults[1].bucket
	prefix := namespace + "-" + twin + "-"
	require.True(t, strings.HasPrefix(near, prefix) && strings.HasPrefix(far, prefix), "%s and %s read alike", near, far)
	require.NotEqual(t, near, far, "and are not the same")
	return vaults
}

// isUntouched looks with the owner's eyes.
func (s *story) isUntouched(t *testing.T, d door, v vault, content string) {
	t.Helper()
	objects, err := d.list(t.Context(), v)
	require.NoError(t, err)
	require.Equal(t, []string{"secret"}, objects, v.bucket)
	read, err := get(t.Context(), d.s3(v.owner), v.bucket, "secret")
	require.NoError(t, err)
	require.Equal(t, content, string(read))
}

// misuseTokens asks STS for the vaults with tokens that are not for them.
func (a attacker) misuseTokens(t *testing.T) {
	ctx := t.Context()
	account := func(name, in, audience string) string {
		c := consumer.Consumer{Name: name, Namespace: in}
		require.NoError(t, c.ServiceAccount(ctx, site.Admin))
		token, err := a.door.token(ctx, identity{account: name, namespace: in, audience: audience})
		require.NoError(t, err)
		return token
	}
	// Every right but the one: an admin of the namespace may edit the SystemBucket, and must not read what is in it.
	editor := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: foreign, Name: "editor"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{names.Group}, Resources: []string{names.Resource, names.Resource + "/status"}, Verbs: []string{"*"}}},
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: editor.ObjectMeta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "editor"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: foreign, Name: "editor"}},
	}
	require.NoError(t, client.IgnoreAlreadyExists(site.Admin.Create(ctx, editor)))
	require.NoError(t, client.IgnoreAlreadyExists(site.Admin.Create(ctx, binding)))

	owner := account("owner", foreign, names.Audience)
	head, rest, _ := strings.Cut(owner, ".")
	body, signature, _ := strings.Cut(rest, ".")
	tokens := map[string]string{
		"the attacker's own":        account("host", namespace, names.Audience),
		"one that may edit it":      account("editor", foreign, names.Audience),
		"for the apiserver":         account("owner", foreign, "https://kubernetes.default.svc"),
		"for another service":       account("owner", foreign, "vault"),
		"without a signature":       head + "." + body + ".",
		"cut":                       owner[:len(owner)-1],
		"of a changed body":         head + "." + flipped(body, len(body)/2) + "." + signature,
		"of a changed signature":    head + "." + body + "." + flipped(signature, len(signature)/2),
		"of another head":           "eyJhbGciOiJub25lIn0." + body + ".",
		"the default account":       account("default", foreign, names.Audience),
		"of the controller's place": account("system-s3", foreign, names.Audience),
		"with a second one beside":  owner + " " + owner,
	}
	for what, token := range tokens {
		for _, role := range []string{names.RoleARN(foreign, mainBucket), names.RoleARN(foreign, twinOther) + "/read", names.RoleARN(foreign, twinOther) + "/write"} {
			answer, err := a.door.exchange(ctx, exchange{method: "POST", body: form(token, map[string]string{"RoleArn": role})})
			status := http.StatusForbidden
			if answer.KeyID != "" {
				status = http.StatusOK
			}
			a.tally.note("a token "+what+" for "+role, status, answer.Code, err)
		}
	}
}
