package e2e

import (
	"cmp"
	"context"
	"crypto/x509"
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhouse/system-s3/lib/names"
	way "github.com/deckhouse/system-s3/tests/demo/door"
)

// door is the way to the store's two Services, on which every secret that is handed out is remembered.
type door struct {
	http   *http.Client
	ledger *ledger
	hosts  map[string]string // host -> address, or only its IP
}

func (s *story) door(t *testing.T) door {
	t.Helper()
	found, err := way.Find(t.Context(), site, mainKey())
	require.NoError(t, err)
	return s.doorTo(found.CA, found.Hosts)
}

func (s *story) doorTo(pool *x509.CertPool, hosts map[string]string) door {
	client := way.Way{Hosts: hosts, CA: pool}.Client()
	return door{ledger: s.ledger, hosts: hosts, http: client}
}

// token is a new token of a ServiceAccount, not bound to a Pod.
func (d door) token(ctx context.Context, i identity) (string, error) {
	token, err := way.Token(ctx, site, client.ObjectKey{Namespace: cmp.Or(i.namespace, namespace), Name: i.account}, i.audience)
	if err == nil {
		d.ledger.note("a token of "+i.account, token)
	}
	return token, err
}

// identity is where an SDK would read a token from a file.
type identity struct {
	door                         door
	account, audience, namespace string // the namespace is the tests' unless another is named
}

// GetIdentityToken implements stscreds.IdentityTokenRetriever.
func (i identity) GetIdentityToken() ([]byte, error) {
	token, err := i.door.token(context.Background(), i)
	return []byte(token), err
}

// fixed is a token of any origin.
type fixed string

// GetIdentityToken implements stscreds.IdentityTokenRetriever.
func (f fixed) GetIdentityToken() ([]byte, error) { return []byte(f), nil }

// provider exchanges tokens for keys as the SDK does.
func (d door) provider(role string, tokens stscreds.IdentityTokenRetriever) aws.CredentialsProvider {
	return d.providerAt(names.STSURL, role, tokens)
}

// providerAt asks the STS endpoint at the address.
func (d door) providerAt(url, role string, tokens stscreds.IdentityTokenRetriever) aws.CredentialsProvider {
	client := sts.New(sts.Options{
		BaseEndpoint: aws.String(url), Region: names.Region, HTTPClient: d.http, RetryMaxAttempts: 1,
	})
	inner := stscreds.NewWebIdentityRoleProvider(client, role, tokens)
	return aws.CredentialsProviderFunc(func(ctx context.Context) (aws.Credentials, error) {
		key, err := inner.Retrieve(ctx)
		if err == nil {
			d.ledger.note("a secret key", key.SecretAccessKey)
			d.ledger.note("a session token", key.SessionToken)
		}
		return key, err
	})
}

// of is the provider of a ServiceAccount for the role of a SystemBucket, with the suffix if any.
func (d door) of(account, bucket, suffix string) aws.CredentialsProvider {
	return d.provider(names.RoleARN(namespace, bucket)+suffix, identity{door: d, account: account, audience: names.Audience})
}

// s3 is a client in the SDK's default style: the bucket is part of the host. It never repeats a request by itself.
func (d door) s3(provider aws.CredentialsProvider) *s3.Client {
	return s3.New(s3.Options{
		BaseEndpoint: aws.String(names.S3URL), Region: names.Region, HTTPClient: d.http, Credentials: provider,
		Retryer: aws.NopRetryer{},
	})
}

// static uses one key and nothing else.
func static(key aws.Credentials) aws.CredentialsProvider {
	return credentials.NewStaticCredentialsProvider(key.AccessKeyID, key.SecretAccessKey, key.SessionToken)
}
