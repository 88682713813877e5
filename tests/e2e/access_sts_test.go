package e2e

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhouse/system-s3/lib/access"
	"github.com/deckhouse/system-s3/lib/names"
	"github.com/deckhouse/system-s3/tests/demo/stage"
	"github.com/deckhouse/system-s3/tests/sandbox/process"
)

// exchange is an STS request in the words of a client that has no SDK.
type exchange struct {
	method, path, query, body string
}

// answered is what STS says, to either side.
type answered struct {
	Code       string    `xml:"Error>Code"`
	Message    string    `xml:"Error>Message"`
	RequestID  string    `xml:"RequestId"`
	KeyID      string    `xml:"AssumeRoleWithWebIdentityResult>Credentials>AccessKeyId"`
	Secret     string    `xml:"AssumeRoleWithWebIdentityResult>Credentials>SecretAccessKey"`
	Session    string    `xml:"AssumeRoleWithWebIdentityResult>Credentials>SessionToken"`
	Expiration time.Time `xml:"AssumeRoleWithWebIdentityResult>Credentials>Expiration"`
}

func (d door) exchange(ctx context.Context, e exchange) (answered, error) {
	address := names.STSURL + "/" + e.path
	if e.query != "" {
		address += "?" + e.query
	}
	request, err := http.NewRequestWithContext(ctx, e.method, address, strings.NewReader(e.body))
	if err != nil {
		return answered{}, err
	}
	if e.body != "" {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	response, err := d.http.Do(request)
	if err != nil {
		return answered{}, err
	}
	var answer answered
	err = errors.Join(xml.NewDecoder(response.Body).Decode(&answer), response.Body.Close())
	if answer.KeyID != "" {
		d.ledger.note("a secret key", answer.Secret)
		d.ledger.note("a session token", answer.Session)
	}
	return answer, err
}

// form is a good request with the changes applied; an empty value takes a parameter away.
func form(token string, changes map[string]string) string {
	values := url.Values{
		"Action": {"AssumeRoleWithWebIdentity"}, "Version": {"2011-06-15"}, "RoleSessionName": {"e2e"},
		"RoleArn": {names.RoleARN(namespace, mainBucket)}, "WebIdentityToken": {token},
	}
	for name, value := range changes {
		values.Set(name, value)
		if value == "" {
			values.Del(name)
		}
	}
	return values.Encode()
}

// speaksSTS has every form of the protocol that clients send, on the real endpoint.
func (s *story) speaksSTS(t *testing.T) {
	d := s.door(t)
	allow(t, "host", names.ReadSubresource, names.WriteSubresource)
	token, err := d.token(t.Context(), identity{account: "host", audience: names.Audience})
	require.NoError(t, err)
	bare := map[string]string{"RoleArn": "", "RoleSessionName": ""}
	arn := map[string]string{"RoleArn": names.RoleARN(namespace, mainBucket) + "/read"}
	inPath := "role/" + namespace + "/" + mainBucket
	cases := map[string]struct {
		reason   string
		exchange exchange
		code     string
	}{
		"POST":                  {reason: "the SDKs", exchange: exchange{method: "POST", body: form(token, nil)}},
		"GET":                   {reason: "pgBackRest and fluent-bit", exchange: exchange{method: "GET", query: form(token, nil)}},
		"POST with a query":     {reason: "AWS takes it", exchange: exchange{method: "POST", query: form(token, nil)}},
		"token with a new line": {reason: "files end with one", exchange: exchange{method: "POST", body: form(token+"\n", nil)}},
		"role in the path":      {reason: "minio-go sends none", exchange: exchange{method: "POST", path: inPath, body: form(token, bare)}},
		"read in the path":      {reason: "narrowed", exchange: exchange{method: "POST", path: inPath + "/read/", body: form(token, bare)}},
		"two roles":             {reason: "which one is meant?", exchange: exchange{method: "POST", path: inPath, body: form(token, arn)}, code: "InvalidParameterCombination"},
		"no role":               {reason: "nothing to decide about", exchange: exchange{method: "POST", body: form(token, bare)}, code: "MissingParameter"},
		"a session policy":      {reason: "cannot be honoured", exchange: exchange{method: "POST", body: form(token, map[string]string{"Policy": "{}"})}, code: "MalformedPolicyDocument"},
		"policies by ARN":       {reason: "cannot be honoured", exchange: exchange{method: "POST", body: form(token, map[string]string{"PolicyArns.member.1.arn": "arn:aws:iam::aws:policy/ReadOnlyAccess"})}, code: "MalformedPolicyDocument"},
		"too short a life":      {reason: "AWS's limits", exchange: exchange{method: "POST", body: form(token, map[string]string{"DurationSeconds": "60"})}, code: "ValidationError"},
		"twice":                 {reason: "parsers differ", exchange: exchange{method: "POST", query: "RoleSessionName=x", body: form(token, nil)}, code: "InvalidParameterCombination"},
		"large":                 {reason: "64 KiB", exchange: exchange{method: "POST", body: form(token, map[string]string{"Other": strings.Repeat("x", 65<<10)})}, code: "ValidationError"},
		"PUT":                   {reason: "GET and POST only", exchange: exchange{method: "PUT", body: form(token, nil)}, code: "InvalidAction"},
		"another path":          {reason: "nothing else is served", exchange: exchange{method: "GET", path: "metrics"}, code: "InvalidAction"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			answer, err := d.exchange(t.Context(), c.exchange)
			require.NoError(t, err)
			require.Equal(t, c.code, answer.Code, "%s: %s", c.reason, answer.Message)
			require.Equal(t, c.code == "", answer.KeyID != "")
		})
	}
	t.Run("a long life is clamped and the truth told", func(t *testing.T) {
		short, err := d.exchange(t.Context(), exchange{method: "POST", body: form(token, nil)})
		require.NoError(t, err)
		long, err := d.exchange(t.Context(), exchange{method: "POST", body: form(token, map[string]string{"DurationSeconds": "43200"})})
		require.NoError(t, err)
		require.Less(t, long.Expiration.Sub(short.Expiration), time.Minute, "no longer than without asking")
	})
	t.Run("a right of the group counts", s.countsGroups)
	t.Run("every replica answers alike", s.answersAlike)
	t.Run("one name in both logs", s.joinsLogs)
}

// countsGroups has an account whose only right is that of all accounts in its namespace.
func (s *story) countsGroups(t *testing.T) {
	ctx := t.Context()
	d := s.door(t)
	c := allow(t, "grouped", names.ReadSubresource)
	require.NoError(t, c.Forbid(ctx, site.Admin))
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "group"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: mainBucket + "-grouped"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:serviceaccounts:" + namespace}},
	}
	require.NoError(t, client.IgnoreAlreadyExists(site.Admin.Create(ctx, binding)))
	t.Cleanup(func() { assert.NoError(t, site.Admin.Delete(context.WithoutCancel(ctx), binding)) })
	require.NoError(t, site.Await(ctx, stage.Wish{What: "a key by the group's right", Limit: shortLimit, Look: func(ctx context.Context) (bool, string, error) {
		_, err := d.of("grouped", mainBucket, "").Retrieve(ctx)
		return err == nil, code(err), nil
	}}))
}

// controllers are the Pods that answer STS.
func controllers(t *testing.T) []corev1.Pod {
	t.Helper()
	pods := &corev1.PodList{}
	require.NoError(t, site.Admin.List(t.Context(), pods, client.InNamespace(names.Namespace), client.MatchingLabels{names.AppLabel: names.ControllerApp}))
	var up []corev1.Pod
	for _, pod := range pods.Items {
		if ready(&pod) {
			up = append(up, pod)
		}
	}
	require.NotEmpty(t, up)
	return up
}

// answersAlike asks each replica by itself: for a key, which must open the bucket, and for what it must refuse.
func (s *story) answersAlike(t *testing.T) {
	d := s.door(t)
	bucket := bucketName(t, mainBucket)
	pods := controllers(t)
	require.Len(t, pods, wantedReplicas())
	require.NoError(t, put(t.Context(), d.s3(d.of("host", mainBucket, "")), bucket, "alike", []byte("content")))
	for _, pod := range pods {
		hosts := maps.Clone(d.hosts)
		hosts[names.STSHost] = net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(names.STSPort))
		one := s.doorTo(d.pool(t), hosts)
		_, err := get(t.Context(), one.s3(aws.NewCredentialsCache(one.of("host", mainBucket, ""))), bucket, "alike")
		require.NoError(t, err, pod.Name)
		_, err = one.of("host", "missing", "").Retrieve(t.Context())
		require.Equal(t, "AccessDenied", code(err), pod.Name)
		_, err = one.provider(names.RoleARN(namespace, mainBucket), fixed("garbage")).Retrieve(t.Context())
		require.Equal(t, "InvalidIdentityToken", code(err), pod.Name)
	}
}

func (d door) pool(t *testing.T) *x509.CertPool {
	t.Helper()
	transport, ok := d.http.Transport.(*http.Transport)
	require.True(t, ok)
	return transport.TLSClientConfig.RootCAs
}

// joinsLogs finds what a key did by the name that STS gave it in its log.
func (s *story) joinsLogs(t *testing.T) {
	d := s.door(t)
	key, err := d.of("host", mainBucket, "/read").Retrieve(t.Context())
	require.NoError(t, err)
	name := access.KeyName(key.AccessKeyID)
	require.NotEmpty(t, name)
	require.Equal(t, "AccessDenied", code(put(t.Context(), d.s3(static(key)), bucketName(t, mainBucket), "joined", nil)))
	for app, container := range map[string]string{names.ControllerApp: "controller", names.GarageApp: names.GatewayContainer} {
		require.NoError(t, site.Await(t.Context(), stage.Wish{What: "the key in the log of " + container, Limit: shortLimit, Look: func(ctx context.Context) (bool, string, error) {
			pods := &corev1.PodList{}
			if err := site.Admin.List(ctx, pods, client.InNamespace(names.Namespace), client.MatchingLabels{names.AppLabel: app}); err != nil {
				return false, "", err
			}
			found := 0
			for i := range pods.Items {
				log, err := site.Logs(ctx, client.ObjectKeyFromObject(&pods.Items[i]), corev1.PodLogOptions{Container: container})
				if err == nil {
					found += strings.Count(log, `"key":"`+name+`"`)
				}
			}
			return found == 1, fmt.Sprintf("%d lines", found), nil
		}}))
	}
}

// bearsHardship freezes the apiserver: STS says so in a way that clients repeat, and goes on by itself. Meanwhile and
// before, clients that send nothing hold up nobody.
func (s *story) bearsHardship(t *testing.T) {
	ctx := t.Context()
	d := s.door(t)
	allow(t, "host", names.ReadSubresource, names.WriteSubresource)
	token, err := d.token(ctx, identity{account: "host", audience: names.Audience})
	require.NoError(t, err)
	key, err := d.of("host", mainBucket, "").Retrieve(ctx)
	require.NoError(t, err)
	bucket, slow := bucketName(t, mainBucket), d.dawdlers(t, 200)

	record, found, err := process.NewTable(site.Dir, io.Discard).Find("kube-apiserver")
	require.NoError(t, err)
	require.True(t, found)
	require.NoError(t, syscall.Kill(record.PID, syscall.SIGSTOP))
	answer, asked := d.exchange(ctx, exchange{method: "POST", body: form(token, nil)})
	used := put(ctx, d.s3(static(key)), bucket, "hardship", []byte("content"))
	require.NoError(t, syscall.Kill(record.PID, syscall.SIGCONT))
	require.NoError(t, asked, "an answer that clients can read, before they give up")
	require.Contains(t, []string{"IDPCommunicationError", "ServiceUnavailable"}, answer.Code, "SDKs try again")
	require.NoError(t, used, "keys need no apiserver")

	require.NoError(t, site.Await(ctx, stage.Wish{What: "keys again", Limit: shortLimit, Look: func(ctx context.Context) (bool, string, error) {
		answer, err := d.exchange(ctx, exchange{method: "POST", body: form(token, nil)})
		return err == nil && answer.KeyID != "", answer.Code, nil
	}}))
	for _, conn := range slow {
		require.NoError(t, conn.SetReadDeadline(time.Now().Add(shortLimit)))
		_, err := io.Copy(io.Discard, conn)
		require.NotErrorIs(t, err, os.ErrDeadlineExceeded, "who does not send his request is hung up on")
		_ = conn.Close()
	}
}

// dawdlers are clients that begin a request and do not go on.
func (d door) dawdlers(t *testing.T, count int) []*tls.Conn {
	t.Helper()
	conns := make([]*tls.Conn, 0, count)
	config := &tls.Config{RootCAs: d.pool(t), ServerName: names.STSHost, MinVersion: tls.VersionTLS12}
	for range count {
		conn, err := (&tls.Dialer{Config: config}).DialContext(t.Context(), "tcp", net.JoinHostPort(d.hosts[names.STSHost], "443"))
		require.NoError(t, err)
		secured, ok := conn.(*tls.Conn)
		require.True(t, ok)
		w := bufio.NewWriter(secured)
		_, _ = w.WriteString("POST / HTTP/1.1\r\nHost: " + names.STSHost + "\r\n")
		require.NoError(t, w.Flush())
		conns = append(conns, secured)
	}
	return conns
}
