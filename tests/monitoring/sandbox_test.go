//go:build sandbox

package monitoring

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

const metricsPort = "8445"

// scraper is who Prometheus is on the platform. What it may do comes with the chart.
const scraper = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: prometheus, namespace: d8-monitoring}
`

// limited is a bucket with every limit there is; the demo's has none by the number of objects.
const limited = `
apiVersion: storage.deckhouse.io/v1alpha1
kind: SystemBucket
metadata: {name: limited, namespace: d8-demo}
spec: {size: 1Gi, maxObjects: 100}
`

func kubectl(t *testing.T, input string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), root+"/bin/sandbox", append([]string{"kubectl"}, args...)...)
	cmd.Stdin = strings.NewReader(input)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, "%v: %s", args, stderr.String())
	return strings.TrimSpace(string(out))
}

// pod is one that tells metrics.
type pod struct{ name, ip, plane string }

func pods(t *testing.T, app string) []pod {
	t.Helper()
	text := kubectl(t, "", "-n", "d8-system-s3", "get", "pods", "-l", "app="+app, "-o",
		`jsonpath={range .items[*]}{.metadata.name} {.status.podIP} {.metadata.labels.system-s3\.deckhouse\.io/plane}{"\n"}{end}`)
	var found []pod
	for line := range strings.Lines(text) {
		fields := append(strings.Fields(line), "")
		found = append(found, pod{fields[0], fields[1], fields[2]})
	}
	require.NotEmpty(t, found, app)
	return found
}

func secret(t *testing.T, name, key string) []byte {
	t.Helper()
	text := kubectl(t, "", "-n", "d8-system-s3", "get", "secret", name, "-o", "jsonpath={.data."+strings.ReplaceAll(key, ".", `\.`)+"}")
	data, err := base64.StdEncoding.DecodeString(text)
	require.NoError(t, err)
	return data
}

// job is a scrape of the PodMonitors' form; targets are fixed, since nothing finds them here.
func job(name, token, caFile, host string, targets []pod) map[string]any {
	var static []map[string]any
	for _, p := range targets {
		labels := map[string]string{"tier": "cluster", "pod": p.name}
		if p.plane != "" {
			labels["plane"] = p.plane
		}
		static = append(static, map[string]any{"targets": []string{net.JoinHostPort(p.ip, metricsPort)}, "labels": labels})
	}
	return map[string]any{
		"job_name": name, "scheme": "https", "authorization": map[string]string{"credentials": token},
		"tls_config": map[string]string{"ca_file": caFile, "server_name": host}, "static_configs": static,
	}
}

// prometheus scrapes, and knows the module's rules. It returns the URL of its API.
func prometheus(t *testing.T, jobs []map[string]any) string {
	t.Helper()
	dir := t.TempDir()
	write := func(name string, content any) string {
		data, err := yaml.Marshal(content)
		require.NoError(t, err)
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, data, 0o600))
		return path
	}
	var all []map[string]any
	for _, g := range groups(t) {
		all = append(all, map[string]any{"name": g.Name, "rules": g.Rules})
	}
	config := write("prometheus.yml", map[string]any{
		"global":     map[string]string{"scrape_interval": "2s", "evaluation_interval": "2s"},
		"rule_files": []string{write("rules.yml", map[string]any{"groups": all})}, "scrape_configs": jobs,
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	require.NoError(t, listener.Close())
	var log bytes.Buffer
	cmd := exec.CommandContext(t.Context(), program(t, "prometheus"), "--config.file", config,
		"--storage.tsdb.path", filepath.Join(dir, "data"), "--web.listen-address", address)
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Wait() // ended by the test's context
		if t.Failed() {
			t.Log(log.String())
		}
	})
	return "http://" + address
}

// ask asks Prometheus' API.
func ask(t *testing.T, api, path string, into any) error {
	t.Helper()
	response, err := http.Get(api + path) //nolint:gosec // the test's own server
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(response.Body)
		return fmt.Errorf("HTTP %d: %s", response.StatusCode, text)
	}
	return json.NewDecoder(response.Body).Decode(into)
}

func results(t *testing.T, api, query string) (int, error) {
	t.Helper()
	var answer struct {
		Data struct {
			Result []json.RawMessage `json:"result"`
		} `json:"data"`
	}
	err := ask(t, api, "/api/v1/query?query="+url.QueryEscape(query), &answer)
	return len(answer.Data.Result), err
}

// quietPanels show what goes wrong or moves: in a healthy store at rest there is nothing in them.
var quietPanels = []string{
	"buckets.json: Errors, most of ten A", "buckets.json: Conditions that are not as they should be A",
	"replicas.json: Filling of replicas, moves A",
	"replicas.json: Move to another StorageClass A", "replicas.json: Move to another StorageClass B",
	"replicas.json: Move to another StorageClass C", "replicas.json: Move to another StorageClass D",
}

func client(ca []byte, host string) *http.Client {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	return &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: host, MinVersion: tls.VersionTLS12}, DisableKeepAlives: true,
	}}
}

func status(t *testing.T, c *http.Client, address, token string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+address, http.NoBody)
	require.NoError(t, err)
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := c.Do(request)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	return response.StatusCode
}

// The dashboards against a real Prometheus that scrapes a real store, on which the demo has run.
func TestEveryQueryOfTheDashboardsReturnsData(t *testing.T) {
	kubectl(t, scraper, "apply", "-f", "-")
	kubectl(t, limited, "apply", "-f", "-")
	kubectl(t, "", "-n", "d8-demo", "wait", "sb/limited", "--for=condition=Ready", "--timeout=2m")
	token := kubectl(t, "", "-n", "d8-monitoring", "create", "token", "prometheus")
	stranger := kubectl(t, "", "-n", "d8-monitoring", "create", "token", "default")
	ca := secret(t, "tls", "ca.crt")
	caFile := filepath.Join(t.TempDir(), "ca.crt")
	require.NoError(t, os.WriteFile(caFile, ca, 0o600))

	controllers, gateways := pods(t, "controller"), pods(t, "garage")
	metricsToken := string(secret(t, "garage-"+gateways[0].plane, "metrics-token"))
	sts, s3 := client(ca, "sts.d8-system-s3.svc"), client(ca, "s3.d8-system-s3.svc")
	for _, p := range controllers {
		address := net.JoinHostPort(p.ip, metricsPort) + "/metrics"
		require.Equal(t, http.StatusUnauthorized, status(t, sts, address, ""))
		require.Equal(t, http.StatusForbidden, status(t, sts, address, stranger))
		require.Equal(t, http.StatusOK, status(t, sts, address, token))
		require.Equal(t, http.StatusBadRequest, status(t, sts, net.JoinHostPort(p.ip, "8443")+"/", ""), "a request for a key that is none")
	}
	for _, p := range gateways {
		address := net.JoinHostPort(p.ip, metricsPort) + "/metrics"
		require.Equal(t, http.StatusUnauthorized, status(t, s3, address, token), "a gateway cannot ask who that is")
		require.Equal(t, http.StatusOK, status(t, s3, address, metricsToken))
		require.Equal(t, http.StatusForbidden, status(t, s3, net.JoinHostPort(p.ip, "8443")+"/", ""), "a request without a key")
	}

	api := prometheus(t, []map[string]any{
		job("system-s3-controller", token, caFile, "sts.d8-system-s3.svc", controllers),
		job("system-s3-gateway", metricsToken, caFile, "s3.d8-system-s3.svc", gateways),
	})
	waiting := panels(t)
	for _, panel := range quietPanels {
		require.Contains(t, waiting, panel)
		delete(waiting, panel)
	}
	require.Eventually(t, func() bool {
		for where, query := range waiting {
			if n, err := results(t, api, query); err == nil && n > 0 {
				delete(waiting, where)
			}
		}
		return len(waiting) == 0
	}, 2*time.Minute, 2*time.Second, "no data: %v", lazy(waiting))
	requireHealthyRules(t, api)
}

// lazy prints what is left when it is printed.
type lazy map[string]string

func (l lazy) String() string {
	var left []string
	for where := range l {
		left = append(left, where)
	}
	slices.Sort(left)
	return strings.Join(left, "; ")
}

// requireHealthyRules: each rule can be evaluated on what is really told, and a healthy store raises nothing.
func requireHealthyRules(t *testing.T, api string) {
	t.Helper()
	var answer struct {
		Data struct {
			Groups []struct {
				Rules []struct {
					Name, Health, LastError, State string
				} `json:"rules"`
			} `json:"groups"`
		} `json:"data"`
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for evaluated := 0; evaluated < len(alerts(t)); {
		require.NoError(t, ctx.Err(), "the rules are not evaluated")
		require.NoError(t, ask(t, api, "/api/v1/rules", &answer))
		evaluated = 0
		for _, g := range answer.Data.Groups {
			for _, r := range g.Rules {
				if r.Health == "ok" {
					evaluated++
				}
				require.Empty(t, r.LastError, r.Name)
				require.NotEqual(t, "firing", r.State, r.Name)
			}
		}
	}
}
