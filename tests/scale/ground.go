package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhouse/system-s3/lib/names"
	"github.com/deckhouse/system-s3/tests/demo/consumer"
	"github.com/deckhouse/system-s3/tests/demo/stage"
)

const (
	namespace   = "d8-scale"
	storeLimit  = 10 * time.Minute
	connections = 64
	attempts    = 10 // of a request: the store may be busier than this measurement
)

// ground is where is measured: the sandbox with the module enabled and a store that runs.
type ground struct {
	*stage.Stage

	http    *http.Client
	gateway string // address of the gateways
}

// prepare enables the module and waits for the store, which the first SystemBucket brings.
func (g *ground) prepare(ctx context.Context) error {
	if err := g.Configure(ctx, true, nil); err != nil {
		return fmt.Errorf("enable the module: %w", err)
	}
	if err := g.Namespace(ctx, namespace); err != nil {
		return fmt.Errorf("make the namespace: %w", err)
	}
	key := client.ObjectKey{Namespace: namespace, Name: "first"}
	err := g.Await(ctx, stage.Wish{What: "SystemBuckets to be accepted", Limit: storeLimit, Look: func(ctx context.Context) (bool, string, error) {
		err := g.Bucket(ctx, key, "1Mi")
		return err == nil, "", err
	}})
	if err != nil {
		return fmt.Errorf("make the first SystemBucket: %w", err)
	}
	if err := g.AwaitBucket(ctx, key, storeLimit); err != nil {
		return fmt.Errorf("wait for the store: %w", err)
	}
	return g.connect(ctx)
}

// connect makes a client that reaches the two Services of the store by their names, as the cluster's DNS would.
func (g *ground) connect(ctx context.Context) error {
	var connection corev1.ConfigMap
	key := client.ObjectKey{Namespace: namespace, Name: names.ConnectionConfigMap("first")}
	if err := g.Admin.Get(ctx, key, &connection); err != nil {
		return fmt.Errorf("read the connection: %w", err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(connection.Data[names.CAKey]))
	hosts := map[string]string{}
	for host, service := range map[string]string{names.S3Host: names.GatewayService, names.STSHost: names.STSService} {
		var object corev1.Service
		if err := g.Admin.Get(ctx, client.ObjectKey{Namespace: names.Namespace, Name: service}, &object); err != nil {
			return fmt.Errorf("read Service %s: %w", service, err)
		}
		hosts[host] = object.Spec.ClusterIP
	}
	g.gateway = hosts[names.S3Host]
	dial := (&net.Dialer{}).DialContext
	g.http = &http.Client{Transport: &http.Transport{
		TLSClientConfig:     &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12},
		MaxIdleConnsPerHost: connections,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			host, port, _ := strings.Cut(address, ":")
			return dial(ctx, network, net.JoinHostPort(hosts[host], port))
		},
	}}
	return nil
}

// token is where an SDK would read a token from a file.
type token struct {
	ctx    context.Context //nolint:containedctx // the SDK passes none
	ground *ground
	name   string
}

// GetIdentityToken implements stscreds.IdentityTokenRetriever.
func (t token) GetIdentityToken() ([]byte, error) {
	const life = 3600
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		Audiences: []string{names.Audience}, ExpirationSeconds: ptr.To(int64(life)),
	}}
	answer, err := t.ground.Typed.CoreV1().ServiceAccounts(namespace).CreateToken(t.ctx, t.name, request, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("request a token: %w", err)
	}
	return []byte(answer.Status.Token), nil
}

// keys are keys for the SystemBucket, for an account of its own name that may read and write.
func (g *ground) keys(ctx context.Context, bucket string) (aws.CredentialsProvider, error) {
	account := consumer.Consumer{Name: bucket, Namespace: namespace, Bucket: bucket}
	if err := account.ServiceAccount(ctx, g.Admin); err != nil {
		return nil, fmt.Errorf("make the account: %w", err)
	}
	if err := account.Allow(ctx, g.Admin, names.ReadSubresource, names.WriteSubresource); err != nil {
		return nil, fmt.Errorf("grant the bucket: %w", err)
	}
	exchange := sts.New(sts.Options{BaseEndpoint: aws.String(names.STSURL), Region: names.Region, HTTPClient: g.http})
	role := names.RoleARN(namespace, bucket)
	return aws.NewCredentialsCache(stscreds.NewWebIdentityRoleProvider(exchange, role, token{ctx, g, bucket})), nil
}

// s3 is a client of the store with the keys.
func (g *ground) s3(keys aws.CredentialsProvider) *s3.Client {
	return s3.New(s3.Options{
		BaseEndpoint: aws.String(names.S3URL), Region: names.Region, HTTPClient: g.http, Credentials: keys, UsePathStyle: true,
		Retryer: retry.NewStandard(func(o *retry.StandardOptions) { o.MaxAttempts, o.RateLimiter = attempts, ratelimit.None }),
	})
}
