// Package sandboxed gives the peer's suite buckets of a sandbox that is up: each is a SystemBucket, and its keys come
// from STS, by a ServiceAccount's token, as for every consumer.
package sandboxed

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/deckhouse/system-s3/lib/api/v1alpha1"
	"github.com/deckhouse/system-s3/lib/names"
	"github.com/deckhouse/system-s3/tests/demo/stage"
	"github.com/deckhouse/system-s3/tests/suite/front"
)

const (
	namespace = "d8-suite"
	account   = "suite"
	size      = "128Mi" // the largest object of the suite has 100 MiB

	// enough buckets for a test to start: it takes one or two, and others are starting.
	enough = 4

	storeLimit  = 10 * time.Minute
	bucketLimit = 2 * time.Minute
	dialLimit   = 10 * time.Second
)

var errNoCA = errors.New("the connection ConfigMap holds no certificate")

// Store makes SystemBuckets.
type Store struct {
	stage *stage.Stage
	quiet *stage.Stage
	http  *http.Client
	made  chan front.Bucket // ahead of those who ask
	stop  context.CancelFunc
	count atomic.Int64
}

// Open enables the module, makes a namespace with a ServiceAccount that may use all buckets in it, waits for the first
// bucket, and goes on making some ahead.
func Open(ctx context.Context, s *stage.Stage, ahead int) (*Store, error) {
	quiet := *s
	quiet.Out = io.Discard // nobody wants to read of each of hundreds of buckets
	st := &Store{stage: s, quiet: &quiet, made: make(chan front.Bucket, ahead)}
	if err := s.Configure(ctx, true, nil); err != nil {
		return nil, err
	}
	if err := s.Namespace(ctx, namespace); err != nil {
		return nil, err
	}
	if err := st.awaitKind(ctx); err != nil {
		return nil, err
	}
	if err := st.sweep(ctx); err != nil {
		return nil, err
	}
	if err := st.allow(ctx); err != nil {
		return nil, err
	}
	first := client.ObjectKey{Namespace: namespace, Name: "first"}
	if err := s.Bucket(ctx, first, size); err != nil {
		return nil, err
	}
	if err := s.AwaitBucket(ctx, first, storeLimit); err != nil {
		return nil, err
	}
	if err := st.connect(ctx, first); err != nil {
		return nil, err
	}
	making, stop := context.WithCancel(ctx)
	st.stop = stop
	for range cap(st.made) {
		go st.makeAhead(making)
	}
	return st, nil
}

// Transport is the way to the gateways.
func (s *Store) Transport() http.RoundTripper { return s.http.Transport }

// Endpoint is the store's S3 address.
func (*Store) Endpoint() *url.URL { return &url.URL{Scheme: "https", Host: names.S3Host} }

// Close stops making buckets and deletes the namespace's.
func (s *Store) Close(ctx context.Context) error {
	s.stop()
	return s.sweep(ctx)
}

// makeAhead goes on after a bucket that was not ready in time: a machine that is too busy for one is not for all.
func (s *Store) makeAhead(ctx context.Context) {
	for ctx.Err() == nil {
		bucket, err := s.make(ctx)
		if err != nil {
			if ctx.Err() == nil {
				s.stage.Sayf("    %v", err)
			}
			continue
		}
		select {
		case s.made <- bucket:
		case <-ctx.Done():
		}
	}
}

// Create implements front.Store.
func (s *Store) Create(ctx context.Context) (front.Bucket, error) {
	select {
	case bucket := <-s.made:
		return bucket, nil
	case <-ctx.Done():
		return front.Bucket{}, fmt.Errorf("wait for a SystemBucket: %w", ctx.Err())
	}
}

// Ready waits until there are buckets for another test: the suite gives one 30 seconds to come.
func (s *Store) Ready(ctx context.Context) error {
	few := min(enough, cap(s.made))
	return s.quiet.Await(ctx, stage.Wish{What: "SystemBuckets for another test", Limit: storeLimit, Look: func(context.Context) (bool, string, error) {
		return len(s.made) >= few, "", nil
	}})
}

func (s *Store) make(ctx context.Context) (front.Bucket, error) {
	key := client.ObjectKey{Namespace: namespace, Name: fmt.Sprint("bucket-", s.count.Add(1))}
	if err := s.quiet.Bucket(ctx, key, size); err != nil {
		return front.Bucket{}, err
	}
	if err := s.quiet.AwaitBucket(ctx, key, bucketLimit); err != nil {
		return front.Bucket{}, err
	}
	object, _, err := s.quiet.ReadBucket(ctx, key)
	if err != nil {
		return front.Bucket{}, err
	}
	return front.Bucket{Name: object.Status.BucketName, Handle: key.Name, Keys: aws.NewCredentialsCache(s.provider(key.Name))}, nil
}

// Delete implements front.Store. The controller empties the bucket and deletes it in its own time.
func (s *Store) Delete(ctx context.Context, bucket front.Bucket) error {
	object := &v1alpha1.SystemBucket{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: bucket.Handle}}
	if err := client.IgnoreNotFound(s.stage.Admin.Delete(ctx, object)); err != nil {
		return fmt.Errorf("delete SystemBucket %s: %w", bucket.Handle, err)
	}
	return nil
}

// sweep deletes every SystemBucket of the namespace and waits until they are gone.
func (s *Store) sweep(ctx context.Context) error {
	err := s.stage.Admin.DeleteAllOf(ctx, &v1alpha1.SystemBucket{}, client.InNamespace(namespace))
	if err != nil {
		return fmt.Errorf("delete the SystemBuckets of %s: %w", namespace, err)
	}
	return s.quiet.Await(ctx, stage.Wish{What: "the SystemBuckets to be gone", Limit: storeLimit, Look: func(ctx context.Context) (bool, string, error) {
		list := &v1alpha1.SystemBucketList{}
		err := s.stage.Admin.List(ctx, list, client.InNamespace(namespace))
		return err == nil && len(list.Items) == 0, fmt.Sprint(len(list.Items), " are left"), err
	}})
}

// awaitKind waits until the module that was just enabled has made its API.
func (s *Store) awaitKind(ctx context.Context) error {
	return s.stage.Await(ctx, stage.Wish{What: "the API of SystemBuckets", Limit: storeLimit, Look: func(ctx context.Context) (bool, string, error) {
		err := s.stage.Admin.List(ctx, &v1alpha1.SystemBucketList{}, client.InNamespace(namespace))
		return err == nil, "", err
	}})
}

// allow gives the ServiceAccount both rights to every bucket of the namespace.
func (s *Store) allow(ctx context.Context) error {
	meta := metav1.ObjectMeta{Namespace: namespace, Name: account}
	user, role, binding := &corev1.ServiceAccount{ObjectMeta: meta}, &rbacv1.Role{ObjectMeta: meta}, &rbacv1.RoleBinding{ObjectMeta: meta}
	steps := map[client.Object]func() error{
		user: func() error { return nil },
		role: func() error {
			role.Rules = []rbacv1.PolicyRule{{
				APIGroups: []string{names.Group}, Verbs: []string{"get"},
				Resources: []string{names.Resource + "/" + names.ReadSubresource, names.Resource + "/" + names.WriteSubresource},
			}}
			return nil
		},
		binding: func() error {
			binding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: account}
			binding.Subjects = []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account}}
			return nil
		},
	}
	for object, change := range steps {
		if _, err := controllerutil.CreateOrUpdate(ctx, s.stage.Admin, object, change); err != nil {
			return fmt.Errorf("let the ServiceAccount %s use the buckets: %w", account, err)
		}
	}
	return nil
}

// connect finds the way to the two Services as the cluster's DNS would show it.
func (s *Store) connect(ctx context.Context, bucket client.ObjectKey) error {
	connection := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: bucket.Namespace, Name: names.ConnectionConfigMap(bucket.Name)}
	if err := s.stage.Admin.Get(ctx, key, connection); err != nil {
		return fmt.Errorf("read the connection ConfigMap: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(connection.Data[names.CAKey])) {
		return errNoCA
	}
	addresses := map[string]string{}
	for host, service := range map[string]string{names.S3Host: names.GatewayService, names.STSHost: names.STSService} {
		object := &corev1.Service{}
		if err := s.stage.Admin.Get(ctx, client.ObjectKey{Namespace: names.Namespace, Name: service}, object); err != nil {
			return fmt.Errorf("read Service %s: %w", service, err)
		}
		addresses[host] = object.Spec.ClusterIP
	}
	dialer := &net.Dialer{Timeout: dialLimit}
	s.http = &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12},
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			host, port, _ := strings.Cut(address, ":")
			return dialer.DialContext(ctx, network, net.JoinHostPort(addresses[host], port))
		},
		DisableCompression: true, MaxIdleConnsPerHost: cap(s.made), ExpectContinueTimeout: time.Minute,
	}}
	return nil
}

// provider exchanges tokens of the ServiceAccount for keys of a bucket.
func (s *Store) provider(bucket string) aws.CredentialsProvider {
	exchange := sts.New(sts.Options{BaseEndpoint: aws.String(names.STSURL), Region: names.Region, HTTPClient: s.http})
	return stscreds.NewWebIdentityRoleProvider(exchange, names.RoleARN(namespace, bucket), tokens{s})
}

// tokens is where an SDK would read a token from a file.
type tokens struct{ store *Store }

// GetIdentityToken implements stscreds.IdentityTokenRetriever.
func (t tokens) GetIdentityToken() ([]byte, error) {
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		Audiences: []string{names.Audience}, ExpirationSeconds: ptr.To(int64(600)),
	}}
	ctx, cancel := context.WithTimeout(context.Background(), dialLimit)
	defer cancel()
	answer, err := t.store.stage.Typed.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, account, request, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("request a token: %w", err)
	}
	return []byte(answer.Status.Token), nil
}
