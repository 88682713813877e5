// Package door is the way from this machine to the store's two Services. Names are resolved here as the cluster's DNS
// would; everything else, TLS included, is as in a Pod.
package door

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhouse/system-s3/lib/names"
	"github.com/deckhouse/system-s3/tests/demo/stage"
)

const (
	dialTimeout    = 10 * time.Second
	requestTimeout = time.Minute
	tokenSeconds   = int64(600) // the shortest life that Kubernetes gives a token
)

var errNoCA = errors.New("the connection parameters have no CA certificate")

// Way is where the Services are and whom they are trusted by.
type Way struct {
	// Hosts are the addresses of the Services by host: host:port, or only its IP.
	Hosts map[string]string
	CA    *x509.CertPool
}

// Find reads the way from the ConfigMap beside the SystemBucket and from the Services.
func Find(ctx context.Context, s *stage.Stage, bucket client.ObjectKey) (Way, error) {
	connection := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: bucket.Namespace, Name: names.ConnectionConfigMap(bucket.Name)}
	if err := s.Admin.Get(ctx, key, connection); err != nil {
		return Way{}, fmt.Errorf("read the connection parameters: %w", err)
	}
	way := Way{Hosts: map[string]string{}, CA: x509.NewCertPool()}
	if !way.CA.AppendCertsFromPEM([]byte(connection.Data[names.CAKey])) {
		return Way{}, errNoCA
	}
	for host, name := range map[string]string{names.S3Host: names.GatewayService, names.STSHost: names.STSService} {
		service := &corev1.Service{}
		if err := s.Admin.Get(ctx, client.ObjectKey{Namespace: names.Namespace, Name: name}, service); err != nil {
			return Way{}, fmt.Errorf("read Service %s: %w", name, err)
		}
		way.Hosts[host] = service.Spec.ClusterIP
	}
	return way, nil
}

// Client is an HTTP client that goes this way.
func (w Way) Client() *http.Client {
	dialer := &net.Dialer{Timeout: dialTimeout}
	return &http.Client{
		Timeout: requestTimeout,
		Transport: &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: w.CA, MinVersion: tls.VersionTLS12},
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				address, err := w.place(address)
				if err != nil {
					return nil, err
				}
				return dialer.DialContext(ctx, network, address)
			},
		},
	}
}

// place is where a host is found, its subdomains too.
func (w Way) place(address string) (string, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", fmt.Errorf("dial: %w", err)
	}
	for suffix, to := range w.Hosts {
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

// Token is a new token of the ServiceAccount for the audience, not bound to a Pod.
func Token(ctx context.Context, s *stage.Stage, account client.ObjectKey, audience string) (string, error) {
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		Audiences: []string{audience}, ExpirationSeconds: ptr.To(tokenSeconds),
	}}
	answer, err := s.Typed.CoreV1().ServiceAccounts(account.Namespace).CreateToken(ctx, account.Name, request, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("request token: %w", err)
	}
	return answer.Status.Token, nil
}
