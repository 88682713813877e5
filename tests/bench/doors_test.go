package bench

import (
	"encoding/hex"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/lib/access"
	"github.com/deckhouse/system-s3/lib/garage/garagetest"
	"github.com/deckhouse/system-s3/lib/names"
)

const benchBucket = "d8-bench-data-abcdefghijkl"

// door is a way to the same Garage.
type door struct {
	name   string
	url    string
	key    aws.Credentials
	region string
	client *http.Client
	pid    int // of the proxy, 0 when there is none
}

// doors are bare Garage and the TLS terminators in front of it.
type doors struct {
	bare, gateway, plain, nginx, tuned *door
	garagePID                          int
}

func openDoors(t testing.TB) doors {
	t.Helper()
	cluster := garagetest.Start(t, 1)
	cluster.CreateBucket(t, benchBucket)
	cert := newCertificate(t)
	internal := aws.Credentials{AccessKeyID: cluster.KeyID, SecretAccessKey: cluster.KeySecret}
	return doors{
		bare:      &door{name: "bare Garage", url: cluster.S3URL(), key: internal, region: names.GarageRegion, client: plainClient()},
		gateway:   openGateway(t, cluster, cert),
		plain:     openNginx(t, "nginx, plain", plain, backend{cluster.S3URL(), cert, internal}),
		nginx:     openNginx(t, "nginx", manual, backend{cluster.S3URL(), cert, internal}),
		tuned:     openNginx(t, "nginx, tuned", tuned, backend{cluster.S3URL(), cert, internal}),
		garagePID: pidListening(t, cluster.Nodes[0].Dir),
	}
}

func (d doors) all() []*door { return []*door{d.bare, d.gateway, d.plain, d.nginx, d.tuned} }

// pidListening finds the Garage process by its configuration file.
func pidListening(t testing.TB, dir string) int {
	t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(t, err)
	for _, link := range links {
		data, err := os.ReadFile(link)
		if err != nil {
			continue // gone by now
		}
		if pid := 0; len(data) > 0 && containsArg(data, filepath.Join(dir, "garage.toml")) {
			_, err := fmt.Sscanf(link, "/proc/%d/cmdline", &pid)
			require.NoError(t, err)
			return pid
		}
	}
	t.Fatal("Garage's process is not there")
	return 0
}

// openGateway starts the real program with a key as STS issues it.
func openGateway(t testing.TB, cluster *garagetest.Cluster, cert certificate) *door {
	t.Helper()
	dir := t.TempDir()
	binary := filepath.Join(dir, "gateway")
	run(t, "go", "-C", filepath.Join("..", ".."), "build", "-o", binary, "./images/gateway")
	ring := access.Ring{}.Rotate(time.Now().Add(-time.Hour), randomBytes(t))
	data, err := ring.Marshal()
	require.NoError(t, err)
	for name, content := range map[string][]byte{
		names.KeyRingKey:      data,
		names.SeedKey:         []byte(hex.EncodeToString(cluster.Seed)),
		names.AdminTokenKey:   []byte(cluster.AdminToken),
		names.MetricsTokenKey: []byte(cluster.MetricsToken),
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
	}
	address := freeAddress(t)
	process := start(t, binary, "serve", "--s3-address", address, "--admin-address", freeAddress(t), "--metrics-address", freeAddress(t),
		"--tls-dir", cert.dir, "--key-ring", filepath.Join(dir, names.KeyRingKey), "--plane-dir", dir, "--volume-dir", dir,
		"--garage-s3", cluster.S3URL(), "--garage-admin", cluster.AdminURL(), "--drain-delay", "1ms")
	waitListening(t, address)
	key, err := access.Issue(ring.Keys[0], access.Grant{
		Bucket: benchBucket, Permission: access.ReadWrite, Subject: "system:serviceaccount:d8-bench:consumer",
		Expires: time.Now().Add(access.MaxLifetime),
	}, [8]byte(randomBytes(t)))
	require.NoError(t, err)
	return &door{
		name: "gateway", url: "https://" + address, client: tlsClient(cert), pid: process.Pid, region: names.Region,
		key: aws.Credentials{AccessKeyID: key.AccessKeyID, SecretAccessKey: key.SecretAccessKey, SessionToken: key.SessionToken},
	}
}

// nginxConfig puts TLS in front of Garage; what is in its location decides how fast it is.
const nginxConfig = `daemon off;
user root;
pid %[1]s/pid;
error_log %[1]s/error.log warn;
worker_processes %[2]d;
events { worker_connections 1024; }
http {
  access_log off;
  client_body_temp_path %[1]s/body;
  proxy_temp_path %[1]s/proxy;
  fastcgi_temp_path %[1]s/fastcgi;
  uwsgi_temp_path %[1]s/uwsgi;
  scgi_temp_path %[1]s/scgi;
  client_max_body_size 5m;
  keepalive_requests 1000000000;
  upstream garage { server %[3]s; %[6]s }
  server {
    listen %[4]s ssl;
    ssl_certificate %[5]s/tls.crt;
    ssl_certificate_key %[5]s/tls.key;
    ssl_protocols TLSv1.2 TLSv1.3;
    location / {
      proxy_pass http://garage;
      proxy_set_header Host $http_host;
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
      %[7]s
    }
  }
}
`

// tuning is what a configuration has besides.
type tuning struct{ upstream, location string }

var (
	// plain is nginx as it comes.
	plain = tuning{}
	// manual is how Garage's manual sets it up.
	manual = tuning{location: "proxy_max_temp_file_size 0;"}
	// tuned is all that was found to make it faster: open connections to Garage and bodies that pass as they come.
	tuned = tuning{
		upstream: "keepalive 256; keepalive_requests 1000000000;",
		location: `proxy_max_temp_file_size 0; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_request_buffering off;`,
	}
)

// backend is what nginx stands in front of, and how its clients sign.
type backend struct {
	url  string
	cert certificate
	key  aws.Credentials
}

func openNginx(t testing.TB, name string, tuning tuning, b backend) *door {
	t.Helper()
	binary := ensureNginx(t)
	dir, address := t.TempDir(), freeAddress(t)
	config := filepath.Join(dir, "nginx.conf")
	text := fmt.Sprintf(nginxConfig, dir, runtime.NumCPU(), b.url[len("http://"):], address, b.cert.dir, tuning.upstream, tuning.location)
	require.NoError(t, os.WriteFile(config, []byte(text), 0o600))
	process := start(t, binary, "-p", dir, "-c", config, "-e", filepath.Join(dir, "error.log"))
	waitListening(t, address)
	return &door{name: name, url: "https://" + address, key: b.key, region: names.GarageRegion, client: tlsClient(b.cert), pid: process.Pid}
}

// ensureNginx is Debian's nginx. It is unpacked into the cache and not installed: as a package it would start serving.
func ensureNginx(t testing.TB) string {
	t.Helper()
	if path, err := exec.LookPath("nginx"); err == nil {
		return path
	}
	cache, err := os.UserCacheDir()
	require.NoError(t, err)
	dir := filepath.Join(cache, "system-s3", "nginx-debian")
	binary := filepath.Join(dir, "usr", "sbin", "nginx")
	if _, err := os.Stat(binary); err == nil {
		return binary
	}
	t.Logf("nginx is missing: unpacking Debian's package nginx into %s", dir)
	require.NoError(t, os.MkdirAll(dir, 0o755))
	shell := `cd "$1" && apt-get update -qq && apt-get install -y -qq --no-install-recommends libssl3 libpcre2-8-0 zlib1g libcrypt1 && ` +
		`apt-get download -qq nginx && dpkg-deb -x nginx_*.deb . && rm nginx_*.deb`
	run(t, "bash", "-euc", shell, "bash", dir)
	return binary
}
