package bench

import (
	"context"
	"crypto/tls"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"

	"github.com/deckhouse/system-s3/lib/access"
	"github.com/deckhouse/system-s3/lib/kube"
	"github.com/deckhouse/system-s3/lib/names"
	"github.com/deckhouse/system-s3/lib/sts"
)

const (
	stsNamespace = "bench-sts-" // and what the apiserver adds: the namespace of an earlier run may still be going away
	stsBucket    = "data"
	stsAccount   = "sts"
	minioModule  = "github.com/minio/minio"
	minioVersion = "v0.0.0-20260212201848-7aac2a2c5b7c"

	accounts   = 20
	tokenLife  = 3600 // seconds
	askedLife  = "900"
	stsWorkers = 8

	wantedExchanges = 1.2 // times MinIO's
)

// tokens is how many there are, so that none comes again within the ten seconds for which the apiserver remembers it.
var tokens = flag.Int("tokens", 12000, "how many tokens are exchanged in turn")

// cluster is the sandbox's apiserver: the one that both STS trust.
type cluster struct {
	config    *rest.Config
	client    kubernetes.Interface
	namespace string
	token     string // of our STS endpoint
}

func openCluster(t *testing.T) *cluster {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig())
	require.NoError(t, err, "the sandbox must be up (make up)")
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	return &cluster{config: config, client: client}
}

// kubeconfig is the sandbox's, unless the environment names one.
func kubeconfig() string {
	if path := os.Getenv("KUBECONFIG"); path != "" {
		return path
	}
	dir := os.Getenv("SANDBOX_DIR")
	if dir == "" {
		dir = "/var/lib/system-s3-sandbox"
	}
	return filepath.Join(dir, "kubeconfig")
}

// order makes what the exchanges need and takes it away in the end: accounts with the right to a bucket that is not
// there, which STS asks others for, and the right of everybody to read the apiserver's keys, which MinIO needs.
func (c *cluster) order(t *testing.T) {
	t.Helper()
	ctx, rbac := t.Context(), c.client.RbacV1()
	namespace, err := c.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: stsNamespace}}, metav1.CreateOptions{})
	require.NoError(t, err)
	c.namespace = namespace.Name
	discovery := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: c.namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:service-account-issuer-discovery"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:unauthenticated"}},
	}
	_, err = rbac.ClusterRoleBindings().Create(ctx, discovery, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx := context.WithoutCancel(ctx)
		assert.NoError(t, c.client.CoreV1().Namespaces().Delete(ctx, c.namespace, metav1.DeleteOptions{}))
		assert.NoError(t, rbac.ClusterRoleBindings().Delete(ctx, c.namespace, metav1.DeleteOptions{}))
	})
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: stsBucket}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{names.Group}, Verbs: []string{"get"}, ResourceNames: []string{stsBucket},
		Resources: []string{names.Resource + "/" + names.ReadSubresource, names.Resource + "/" + names.WriteSubresource},
	}}}
	_, err = rbac.Roles(c.namespace).Create(ctx, role, metav1.CreateOptions{})
	require.NoError(t, err)
	c.reviewer(t)
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: stsBucket},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: stsBucket},
	}
	for i := range accounts {
		name := account(i)
		_, err = c.client.CoreV1().ServiceAccounts(c.namespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		require.NoError(t, err)
		binding.Subjects = append(binding.Subjects, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: c.namespace, Name: name})
	}
	_, err = rbac.RoleBindings(c.namespace).Create(ctx, binding, metav1.CreateOptions{})
	require.NoError(t, err)
}

// reviewer is the account of our STS endpoint: a ServiceAccount as the controller's, which may make reviews.
func (c *cluster) reviewer(t *testing.T) {
	t.Helper()
	accounts := c.client.CoreV1().ServiceAccounts(c.namespace)
	_, err := accounts.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: stsAccount}}, metav1.CreateOptions{})
	require.NoError(t, err)
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: c.namespace + "-" + stsAccount},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:auth-delegator"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: c.namespace, Name: stsAccount}},
	}
	bindings := c.client.RbacV1().ClusterRoleBindings()
	_, err = bindings.Create(t.Context(), binding, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, bindings.Delete(context.WithoutCancel(t.Context()), binding.Name, metav1.DeleteOptions{}))
	})
	answer, err := accounts.CreateToken(t.Context(), stsAccount, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(int64(tokenLife))},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	c.token = answer.Status.Token
}

func account(i int) string { return fmt.Sprintf("consumer-%d", i%accounts) }

func (c *cluster) tokens(t *testing.T) []string {
	t.Helper()
	made := make([]string, *tokens)
	var next atomic.Int64
	var making sync.WaitGroup
	errs := make(chan error, stsWorkers)
	for range stsWorkers {
		making.Go(func() {
			for i := int(next.Add(1)) - 1; i < *tokens; i = int(next.Add(1)) - 1 {
				request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
					Audiences: []string{names.Audience}, ExpirationSeconds: ptr.To(int64(tokenLife)),
				}}
				answer, err := c.client.CoreV1().ServiceAccounts(c.namespace).CreateToken(t.Context(), account(i), request, metav1.CreateOptions{})
				if err != nil {
					errs <- err
					return
				}
				made[i] = answer.Status.Token
			}
		})
	}
	making.Wait()
	close(errs)
	require.NoError(t, <-errs)
	return made
}

// stsDoor is an STS endpoint.
type stsDoor struct {
	name, url, role string
	client          *http.Client
	pid             int
}

// oursVariable makes this program our STS endpoint, so that it is a process of its own as MinIO is.
const oursVariable = "SYSTEM_S3_BENCH_STS"

// tokenVariable carries the token by which it asks the apiserver.
const tokenVariable = "SYSTEM_S3_BENCH_TOKEN"

// fixedBucket stands for the controller's cache of SystemBuckets.
type fixedBucket string

// Bucket is the one there is.
func (b fixedBucket) Bucket(context.Context, string, string) (string, error) { return string(b), nil }

// serveSTS is the endpoint of the controller with its limits, which protect one apiserver from a thousand Pods, out of
// the way.
func serveSTS(address string) error {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	config = rest.AnonymousClientConfig(config)
	config.BearerToken = os.Getenv(tokenVariable)
	reviews, err := kube.NewReviews(config, kube.Unlimited())
	if err != nil {
		return err
	}
	ring := access.Ring{}.Rotate(time.Now().Add(-time.Hour), make([]byte, 32)) //nolint:mnd // a key that opens nothing
	unlimited := sts.Rate{PerSecond: 1e6, Burst: 1e6}
	handler := sts.New(sts.Config{
		Reviewer: reviews, Authorizer: reviews, Buckets: fixedBucket(benchBucket),
		Issuer: sts.RingIssuer{Ring: func() (access.Ring, error) { return ring, nil }, Now: time.Now},
		Log:    logr.Discard(), Lifetime: access.MaxLifetime, Now: time.Now,
		Limits: sts.Limits{Source: unlimited, Subject: unlimited},
	})
	dir := os.Getenv(oursVariable)
	server := &http.Server{Addr: address, Handler: handler, ReadHeaderTimeout: time.Minute, TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12}}
	return server.ListenAndServeTLS(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
}

func openSTS(t *testing.T, cert certificate, c *cluster) stsDoor {
	t.Helper()
	address := freeAddress(t)
	process := startWith(t, []string{oursVariable + "=" + cert.dir, "KUBECONFIG=" + kubeconfig(), tokenVariable + "=" + c.token}, os.Args[0], address)
	waitListening(t, address)
	return stsDoor{
		name: "system-s3", url: "https://" + address + "/", role: names.RoleARN(c.namespace, stsBucket), client: tlsClient(cert),
		pid: process.Pid,
	}
}

var minioRole = regexp.MustCompile(`arn:minio:iam:::role/\S+`)

func openMinIO(t *testing.T, cert certificate, c *cluster) stsDoor {
	t.Helper()
	binary := ensureMinIO(t)
	dir, address := diskFolder(t), freeAddress(t)
	certs := filepath.Join(dir, "certs")
	require.NoError(t, os.MkdirAll(filepath.Join(certs, "CAs"), 0o700))
	for from, to := range map[string]string{"tls.crt": "public.crt", "tls.key": "private.key"} {
		data, err := os.ReadFile(filepath.Join(cert.dir, from))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(certs, to), data, 0o600))
	}
	require.NoError(t, os.WriteFile(filepath.Join(certs, "CAs", "apiserver.crt"), c.config.CAData, 0o600))
	process := startWith(t, []string{
		"MINIO_ROOT_USER=bench", "MINIO_ROOT_PASSWORD=bench-password", "MINIO_BROWSER=off", "MINIO_CI_CD=1",
		"MINIO_IDENTITY_OPENID_CONFIG_URL=" + c.config.Host + "/.well-known/openid-configuration",
		"MINIO_IDENTITY_OPENID_CLIENT_ID=" + names.Audience, "MINIO_IDENTITY_OPENID_ROLE_POLICY=readwrite", "HOME=" + dir,
	}, binary, "server", "--address", address, "--certs-dir", certs, filepath.Join(dir, "data"))
	waitListening(t, address)
	require.Eventually(t, func() bool { return minioRole.Match(process.output()) }, startLimit, startTick, "MinIO tells its role")
	return stsDoor{
		name: "MinIO", url: "https://" + address + "/", role: string(minioRole.Find(process.output())), client: tlsClient(cert),
		pid: process.Pid,
	}
}

// diskFolder is not in memory: MinIO keeps every key that it issues, and would not keep it there.
func diskFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "system-s3-bench-") //nolint:usetesting // the tests' folders are in memory
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, os.RemoveAll(dir)) })
	return dir
}

func ensureMinIO(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	require.NoError(t, err)
	dir := filepath.Join(cache, "system-s3", "minio-"+minioVersion)
	binary := filepath.Join(dir, "minio")
	if _, err := os.Stat(binary); err == nil {
		return binary
	}
	t.Logf("building MinIO %s into %s (a few minutes)", minioVersion, dir)
	cmd := exec.CommandContext(t.Context(), "go", "install", minioModule+"@"+minioVersion)
	cmd.Env, cmd.Dir = append(os.Environ(), "GOBIN="+dir, "GOFLAGS="), os.TempDir()
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return binary
}

type exchanged struct {
	Key struct {
		AccessKeyID string `xml:"AccessKeyId"`
	} `xml:"AssumeRoleWithWebIdentityResult>Credentials"`
}

var errNoKey = errors.New("no key in the answer")

// exchange swaps a token for a key.
func (d stsDoor) exchange(token string) error {
	form := url.Values{
		"Action": {"AssumeRoleWithWebIdentity"}, "Version": {"2011-06-15"}, "RoleArn": {d.role}, "RoleSessionName": {"bench"},
		"DurationSeconds": {askedLife}, "WebIdentityToken": {token},
	}
	response, err := d.client.PostForm(d.url, form)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	var answer exchanged
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d: %s", response.StatusCode, data)
	}
	if err := xml.Unmarshal(data, &answer); err != nil || answer.Key.AccessKeyID == "" {
		return errors.Join(errNoKey, err)
	}
	return nil
}

// source hands out tokens in turn.
type source struct {
	tokens []string
	next   atomic.Int64
}

func (s *source) token() string { return s.tokens[int(s.next.Add(1))%len(s.tokens)] }

// stsFigure is what came of a round.
type stsFigure struct {
	rate float64 // exchanges per second
	p99  time.Duration
	cpu  stsCPU // for one exchange
}

// stsCPU is who used how much CPU time.
type stsCPU struct{ client, door, apiserver time.Duration }

func (c stsCPU) all() time.Duration { return c.client + c.door + c.apiserver }

// cpuNow is what was used until now.
func (d stsDoor) cpuNow(t *testing.T, apiserver int) stsCPU {
	t.Helper()
	return stsCPU{ownCPUTime(t, os.Getpid()), ownCPUTime(t, d.pid), ownCPUTime(t, apiserver)}
}

// since is the share of one of so many exchanges in what was used since then.
func (c stsCPU) since(before stsCPU, exchanges int) stsCPU {
	share := func(now, then time.Duration) time.Duration { return (now - then) / time.Duration(exchanges) }
	return stsCPU{share(c.client, before.client), share(c.door, before.door), share(c.apiserver, before.apiserver)}
}

// apiserver is the sandbox's process: what it uses for an exchange is part of the price.
func apiserver(t *testing.T) int {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(t, err)
	own := filepath.Dir(kubeconfig()) + "/pki"
	for _, line := range lines {
		data, err := os.ReadFile(line)
		if err != nil || !containsArg(data, "kube-apiserver") || !strings.Contains(string(data), own) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(line)))
		require.NoError(t, err)
		return pid
	}
	require.Fail(t, "no kube-apiserver of the sandbox runs")
	return 0
}

func (d stsDoor) run(t *testing.T, tokens *source, apiserver int) stsFigure {
	t.Helper()
	took := make([][]time.Duration, stsWorkers)
	errs := make(chan error, stsWorkers)
	var running sync.WaitGroup
	before, began := d.cpuNow(t, apiserver), time.Now()
	for worker := range stsWorkers {
		running.Go(func() {
			for time.Since(began) < *lasting {
				asked := time.Now()
				if err := d.exchange(tokens.token()); err != nil {
					errs <- err
					return
				}
				took[worker] = append(took[worker], time.Since(asked))
			}
		})
	}
	running.Wait()
	lasted, used := time.Since(began), d.cpuNow(t, apiserver)
	close(errs)
	require.NoError(t, <-errs, d.name)
	all := slices.Sorted(slices.Values(slices.Concat(took...)))
	return stsFigure{rate: float64(len(all)) / lasted.Seconds(), p99: all[len(all)*99/100], cpu: used.since(before, len(all))}
}

func TestExchanges(t *testing.T) {
	c := openCluster(t)
	require.NotEmpty(t, c.config.CAData, "the kubeconfig carries the apiserver's CA")
	c.order(t)
	cert := newCertificate(t)
	doors := []stsDoor{openSTS(t, cert, c), openMinIO(t, cert, c)}
	tokens := &source{tokens: c.tokens(t)}
	figures := map[string][]stsFigure{}
	doors = slices.DeleteFunc(doors, func(d stsDoor) bool { return *only != "" && d.name != *only })
	for _, d := range doors {
		require.NoError(t, d.exchange(tokens.token()), d.name)
	}
	apiserver := apiserver(t)
	for round := range *rounds {
		for i := range doors {
			d := doors[(round+i)%len(doors)]
			figures[d.name] = append(figures[d.name], d.run(t, tokens, apiserver))
		}
	}
	reportSTS(t, doors, figures)
}

func reportSTS(t *testing.T, doors []stsDoor, figures map[string][]stsFigure) {
	t.Helper()
	sayf("STS exchanges, %d at once, each with another token, %d rounds of %s\n", stsWorkers, *rounds, *lasting)
	p99, cpu := map[string]float64{}, map[string]float64{}
	for _, d := range doors {
		of := func(pick func(stsFigure) float64) float64 {
			var all []float64
			for _, f := range figures[d.name] {
				all = append(all, pick(f))
			}
			return median(all)
		}
		milliseconds := func(pick func(stsFigure) time.Duration) float64 {
			return of(func(f stsFigure) float64 { return float64(pick(f)) / float64(time.Millisecond) })
		}
		p99[d.name] = milliseconds(func(f stsFigure) time.Duration { return f.p99 })
		cpu[d.name] = milliseconds(func(f stsFigure) time.Duration { return f.cpu.all() })
		sayf("  %-13s %5.0f a second, p99 %5.1f ms, CPU of one %.2f ms (client %.2f, STS %.2f, apiserver %.2f)\n", d.name,
			of(func(f stsFigure) float64 { return f.rate }), p99[d.name], cpu[d.name],
			milliseconds(func(f stsFigure) time.Duration { return f.cpu.client }),
			milliseconds(func(f stsFigure) time.Duration { return f.cpu.door }),
			milliseconds(func(f stsFigure) time.Duration { return f.cpu.apiserver }))
	}
	if *only != "" {
		return
	}
	var ratios []float64
	for i, ours := range figures[doors[0].name] {
		ratios = append(ratios, ours.rate/figures[doors[1].name][i].rate)
	}
	sayf("  system-s3 / MinIO %.2f median (%.2f..%.2f), wanted %.2f; by CPU time %.2f\n", median(ratios), slices.Min(ratios),
		slices.Max(ratios), wantedExchanges, cpu[doors[1].name]/cpu[doors[0].name])
	assert.GreaterOrEqual(t, median(ratios), wantedExchanges)
	assert.LessOrEqual(t, p99[doors[0].name], p99[doors[1].name], "the slowest hundredth")
}
