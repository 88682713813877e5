package e2e

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhouse/system-s3/lib/names"
)

// door is the way from this machine to the store's two Services. Names are resolved here as the cluster's DNS would;
// everything else, TLS included, is as in a Pod.
type door struct {
	http   *http.Client
	ledger *ledger
	hosts  map[string]string // host -> address, or only its IP
	region string
}

func (s *story) door(t *testing.T) door {
	t.Helper()
	connection := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: namespace, Name: names.ConnectionConfigMap(mainBucket)}
	require.NoError(t, site.Admin.Get(t.Context(), key, connection))
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM([]byte(connection.Data[names.CAKey])))

	hosts := map[string]string{}
	for host, service := range map[string]string{names.S3Host: names.GatewayService, names.STSHost: names.STSService} {
		object := &corev1.Service{}
		require.NoError(t, site.Admin.Get(t.Context(), client.ObjectKey{Namespace: names.Namespace, Name: service}, object))
		hosts[host] = object.Spec.ClusterIP
	}
	return s.doorTo(pool, hosts)
}

func (s *story) doorTo(pool *x509.CertPool, hosts map[string]string) door {
	dialer := &net.Dialer{Timeout: 10 * time.Second}
	return door{ledger: s.ledger, hosts: hosts, region: cmp.Or(s.region, names.Region), http: &http.Client{
		Timeout: shortLimit,
		Transport: &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12},
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				address, err := place(hosts, address)
				if err != nil {
					return nil, err
				}
				return dialer.DialContext(ctx, network, address)
			},
		},
	}}
}

// place is where a host is found, its subdomains too.
func place(hosts map[string]string, address string) (string, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", fmt.Errorf("dial: %w", err)
	}
	for suffix, to := range hosts {
		switch {
		case host != suffix && !strings.HasSuffix(host, "."+suffix):
		case strings.Contains(to, ":"):
			return to, nil
		default:
			return net.JoinHostPort(to, port), nil
		}
	}
	return "", fmt.Errorf("dial: nothing of the store is called %s", host)
}

// token is a new token of a ServiceAccount, not bound to a Pod.
func (d door) token(ctx context.Context, i identity) (string, error) {
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		Audiences: []string{i.audience}, ExpirationSeconds: ptr.To(int64(600)),
	}}
	answer, err := site.Typed.CoreV1().ServiceAccounts(cmp.Or(i.namespace, namespace)).CreateToken(ctx, i.account, request, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("request token: %w", err)
	}
	d.ledger.note("a token of "+i.account, answer.Status.Token)
	return answer.Status.Token, nil
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
		BaseEndpoint: aws.String(url), Region: d.region, HTTPClient: d.http, RetryMaxAttempts: 1,
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
		BaseEndpoint: aws.String(names.S3URL), Region: d.region, HTTPClient: d.http, Credentials: provider,
		Retryer: aws.NopRetryer{},
	})
}

// static uses one key and nothing else.
func static(key aws.Credentials) aws.CredentialsProvider {
	return credentials.NewStaticCredentialsProvider(key.AccessKeyID, key.SecretAccessKey, key.SessionToken)
}
