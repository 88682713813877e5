package e2e

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhouse/system-s3/lib/api/v1alpha1"
	"github.com/deckhouse/system-s3/lib/names"
	"github.com/deckhouse/system-s3/tests/demo/stage"
)

// code is the error code that a client sees; empty without an error.
func code(err error) string {
	var coded smithy.APIError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &coded):
		return coded.ErrorCode()
	default:
		return err.Error()
	}
}

func put(ctx context.Context, c *s3.Client, bucket, key string, content []byte) error {
	_, err := c.PutObject(ctx, &s3.PutObjectInput{Bucket: &bucket, Key: &key, Body: bytes.NewReader(content)})
	return err
}

func get(ctx context.Context, c *s3.Client, bucket, key string) ([]byte, error) {
	object, err := c.GetObject(ctx, &s3.GetObjectInput{Bucket: &bucket, Key: &key})
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(object.Body)
	return content, errors.Join(err, object.Body.Close())
}

// bucketName is the S3 name of the SystemBucket.
func bucketName(t *testing.T, name string) string {
	t.Helper()
	bucket, _, err := site.ReadBucket(t.Context(), client.ObjectKey{Namespace: namespace, Name: name})
	require.NoError(t, err)
	require.NotEmpty(t, bucket.Status.BucketName)
	return bucket.Status.BucketName
}

// newBucket makes one more SystemBucket and returns its S3 name.
func newBucket(t *testing.T, name, size string) string {
	t.Helper()
	key := client.ObjectKey{Namespace: namespace, Name: name}
	require.NoError(t, site.Bucket(t.Context(), key, size))
	require.NoError(t, site.AwaitBucket(t.Context(), key, moduleLimit))
	return bucketName(t, name)
}

func (s *story) refusesAtSTS(t *testing.T) {
	d := s.door(t)
	allow(t, "host", names.ReadSubresource, names.WriteSubresource)
	foreign, err := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.RegisteredClaims{
		Subject: "system:serviceaccount:" + namespace + ":host", Audience: jwt.ClaimStrings{names.Audience},
		ExpiresAt: jwt.NewNumericDate(time.Now().Add(time.Hour)),
	}).SignedString([]byte("not the cluster's key"))
	require.NoError(t, err)
	good, role := identity{door: d, account: "host", audience: names.Audience}, names.RoleARN(namespace, mainBucket)
	cases := map[string]struct {
		reason string
		role   string
		tokens stscreds.IdentityTokenRetriever
		code   string
	}{
		"all is well":      {reason: "the others differ from this in one thing", role: role, tokens: good},
		"wrong audience":   {reason: "not meant for us", role: role, tokens: identity{door: d, account: "host", audience: "other"}, code: "IDPRejectedClaim"},
		"apiserver token":  {reason: "such tokens may live a year", role: role, tokens: identity{door: d, account: "host", audience: "https://kubernetes.default.svc"}, code: "IDPRejectedClaim"},
		"foreign token":    {reason: "not signed by this cluster", role: role, tokens: fixed(foreign), code: "IDPRejectedClaim"},
		"garbage":          {reason: "no token at all", role: role, tokens: fixed("not-a-token"), code: "InvalidIdentityToken"},
		"missing bucket":   {reason: "same as forbidden", role: names.RoleARN(namespace, "missing"), tokens: good, code: "AccessDenied"},
		"other namespace":  {reason: "rights end at the namespace", role: names.RoleARN("d8-other", mainBucket), tokens: good, code: "AccessDenied"},
		"role of AWS":      {reason: "one grammar", role: "arn:aws:iam::123456789012:role/administrator", tokens: good, code: "ValidationError"},
		"unknown suffix":   {reason: "read and write are all there is", role: role + "/admin", tokens: good, code: "ValidationError"},
		"narrowed to read": {reason: "as asked", role: role + "/read", tokens: good},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := d.provider(c.role, c.tokens).Retrieve(t.Context())
			require.Equal(t, c.code, code(err), c.reason)
		})
	}
	t.Run("on the S3 host", func(t *testing.T) {
		_, err := d.providerAt(names.S3URL, role, good).Retrieve(t.Context())
		require.NoError(t, err, "some clients cannot be told another host")
	})
	t.Run("malformed requests", func(t *testing.T) {
		for form, want := range map[string]string{"": "MissingAction", "Action=GetCallerIdentity&Version=2011-06-15": "InvalidAction", "Action=%zz": "InvalidQueryParameter"} {
			response, err := d.http.Post(names.STSURL, "application/x-www-form-urlencoded", strings.NewReader(form))
			require.NoError(t, err)
			var answer struct {
				Code string `xml:"Error>Code"`
			}
			require.NoError(t, errors.Join(xml.NewDecoder(response.Body).Decode(&answer), response.Body.Close()))
			require.Equal(t, want, answer.Code, form)
		}
	})
}

func (s *story) refusesAtGateway(t *testing.T) {
	d := s.door(t)
	allow(t, "host", names.ReadSubresource, names.WriteSubresource)
	bucket := bucketName(t, mainBucket)
	key, err := d.of("host", mainBucket, "").Retrieve(t.Context())
	require.NoError(t, err)
	other := newBucket(t, "other", "100Mi")
	tampered := func(change func(*aws.Credentials)) *s3.Client {
		k := key
		change(&k)
		return d.s3(static(k))
	}
	flip := func(text string) string {
		last := text[len(text)-10]
		replacement := byte('A')
		if last == 'A' {
			replacement = 'B'
		}
		return text[:len(text)-10] + string(replacement) + text[len(text)-9:]
	}
	cases := map[string]struct {
		reason string
		client *s3.Client
		bucket string
		code   string
	}{
		"all is well":     {reason: "the others differ from this in one thing", client: tampered(func(*aws.Credentials) {}), bucket: bucket},
		"changed key id":  {reason: "the key carries its MAC", client: tampered(func(k *aws.Credentials) { k.AccessKeyID = flip(k.AccessKeyID) }), bucket: bucket, code: "InvalidAccessKeyId"},
		"changed secret":  {reason: "the signature is wrong", client: tampered(func(k *aws.Credentials) { k.SecretAccessKey = flip(k.SecretAccessKey) }), bucket: bucket, code: "SignatureDoesNotMatch"},
		"changed session": {reason: "checked when sent", client: tampered(func(k *aws.Credentials) { k.SessionToken = flip(k.SessionToken) }), bucket: bucket, code: "InvalidToken"},
		"key of AWS":      {reason: "nobody issued it", client: tampered(func(k *aws.Credentials) { k.AccessKeyID = "AKIAIOSFODNN7EXAMPLE" }), bucket: bucket, code: "InvalidAccessKeyId"},
		"other bucket":    {reason: "a key opens one bucket", client: tampered(func(*aws.Credentials) {}), bucket: other, code: "AccessDenied"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.code, code(put(t.Context(), c.client, c.bucket, "refused", []byte("x"))), c.reason)
		})
	}
	t.Run("no key at all", func(t *testing.T) {
		response, err := d.http.Get((&url.URL{Scheme: "https", Host: names.S3Host, Path: "/" + bucket + "/refused"}).String())
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, http.StatusForbidden, response.StatusCode)
	})
}

func (s *story) narrows(t *testing.T) {
	d := s.door(t)
	bucket := bucketName(t, mainBucket)
	allow(t, "host", names.ReadSubresource, names.WriteSubresource)
	allow(t, "reader", names.ReadSubresource)
	allow(t, "writer", names.WriteSubresource)
	ctx := t.Context()
	require.NoError(t, put(ctx, d.s3(d.of("host", mainBucket, "")), bucket, "narrow", []byte("content")))
	cases := map[string]struct {
		reason      string
		provider    aws.CredentialsProvider
		read, write string
	}{
		"both":             {reason: "RBAC grants both", provider: d.of("host", mainBucket, "")},
		"narrowed to read": {reason: "the suffix narrows", provider: d.of("host", mainBucket, "/read"), write: "AccessDenied"},
		"reader":           {reason: "RBAC grants read", provider: d.of("reader", mainBucket, ""), write: "AccessDenied"},
		"writer":           {reason: "write does not imply read", provider: d.of("writer", mainBucket, ""), read: "AccessDenied"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			client := d.s3(aws.NewCredentialsCache(c.provider))
			require.Equal(t, c.write, code(put(t.Context(), client, bucket, "narrow", []byte("content"))), c.reason)
			_, err := get(t.Context(), client, bucket, "narrow")
			require.Equal(t, c.read, code(err), c.reason)
		})
	}
}

func (s *story) holdsQuota(t *testing.T) {
	d := s.door(t)
	bucket := newBucket(t, "small", "2Mi")
	allowBucket(t, "host", "small", names.ReadSubresource, names.WriteSubresource)
	client := d.s3(aws.NewCredentialsCache(d.of("host", "small", "")))
	require.NoError(t, put(t.Context(), client, bucket, "fits", make([]byte, 1<<20)))
	require.Equal(t, "QuotaExceeded", code(put(t.Context(), client, bucket, "does-not", make([]byte, 2<<20))))
}

func (s *story) deletesBucket(t *testing.T) {
	ctx := t.Context()
	d := s.door(t)
	before := bucketName(t, "small")
	key, err := d.of("host", "small", "").Retrieve(ctx)
	require.NoError(t, err)
	bucket := &v1alpha1.SystemBucket{}
	bucket.Namespace, bucket.Name = namespace, "small"
	require.NoError(t, site.Admin.Delete(ctx, bucket))
	require.NoError(t, site.Await(ctx, stage.Wish{What: "the SystemBucket to be gone", Limit: moduleLimit, Look: absent(
		client.ObjectKeyFromObject(bucket), &v1alpha1.SystemBucket{})}))
	require.NoError(t, site.Await(ctx, stage.Wish{What: "its ConfigMap to be gone", Limit: shortLimit, Look: absent(
		client.ObjectKey{Namespace: namespace, Name: names.ConnectionConfigMap("small")}, &corev1.ConfigMap{})}))
	_, err = get(ctx, d.s3(static(key)), before, "fits")
	require.Error(t, err, "the data is gone, whatever the key says")

	after := newBucket(t, "small", "2Mi")
	require.NotEqual(t, before, after, "made again it is another bucket")
	_, err = get(ctx, d.s3(static(key)), after, "fits")
	require.Equal(t, "AccessDenied", code(err), "an old key does not open it")
}

func (s *story) revokes(t *testing.T) {
	ctx := t.Context()
	d := s.door(t)
	c := allow(t, "revoked", names.ReadSubresource)
	_, err := d.of("revoked", mainBucket, "").Retrieve(ctx)
	require.NoError(t, err)
	require.NoError(t, c.Forbid(ctx, site.Admin))
	// The apiserver's own cache of RBAC takes a moment.
	require.NoError(t, site.Await(ctx, stage.Wish{What: "the next key to be refused", Limit: shortLimit, Look: func(ctx context.Context) (bool, string, error) {
		_, err := d.of("revoked", mainBucket, "").Retrieve(ctx)
		return code(err) == "AccessDenied", code(err), nil
	}}))
}
