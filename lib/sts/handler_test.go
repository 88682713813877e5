package sts_test

import (
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/lib/access"
	"github.com/deckhouse/system-s3/lib/names"
	"github.com/deckhouse/system-s3/lib/sts"
)

var requestID = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`)

// golden compares with a file of testdata, whose request id stands for any.
func golden(t *testing.T, name, got string) {
	t.Helper()
	want, err := os.ReadFile("testdata/" + name)
	require.NoError(t, err)
	require.Regexp(t, requestID, got)
	require.Equal(t, strings.TrimSpace(string(want)), requestID.ReplaceAllString(got, "REQUEST-ID"))
}

func TestAnswerIsGolden(t *testing.T) {
	w := newWorld()
	w.key = &access.Key{
		AccessKeyID: "SYSS3EXAMPLE", SecretAccessKey: "secret-example", SessionToken: "session-example", Expires: noon.Add(30 * time.Minute),
	}
	recorder := serve(w.handler(), post(t, form(t, nil)))
	require.Equal(t, http.StatusOK, recorder.Code)
	require.Equal(t, "text/xml", recorder.Header().Get("Content-Type"))
	require.Contains(t, recorder.Body.String(), recorder.Header().Get("X-Amzn-Requestid"))
	golden(t, "success.xml", recorder.Body.String())
}

func TestErrorIsGolden(t *testing.T) {
	w := newWorld()
	w.granted = 0
	recorder := serve(w.handler(), post(t, form(t, nil)))
	require.Equal(t, http.StatusForbidden, recorder.Code)
	golden(t, "denied.xml", recorder.Body.String())
}

type answer struct {
	Credentials struct {
		AccessKeyID                   string `xml:"AccessKeyId"`
		SecretAccessKey, SessionToken string
		Expiration                    time.Time
	} `xml:"AssumeRoleWithWebIdentityResult>Credentials"`
	ARN string `xml:"AssumeRoleWithWebIdentityResult>AssumedRoleUser>Arn"`
}

type failure struct {
	Type    string `xml:"Error>Type"`
	Code    string `xml:"Error>Code"`
	Message string `xml:"Error>Message"`
}

func parse[T any](t *testing.T, recorder *httptest.ResponseRecorder) T {
	t.Helper()
	var out T
	require.NoError(t, xml.Unmarshal(recorder.Body.Bytes(), &out), recorder.Body.String())
	return out
}

func TestMissingAndForbiddenLookTheSame(t *testing.T) {
	forbidden, missing := newWorld(), newWorld()
	forbidden.granted = 0
	missing.bucketErr = sts.ErrNoBucket
	first := parse[failure](t, serve(forbidden.handler(), post(t, form(t, nil))))
	second := parse[failure](t, serve(missing.handler(), post(t, form(t, nil))))
	require.Equal(t, "AccessDenied", first.Code)
	require.Equal(t, first, second)
}

// TestErrors has every code of the protocol at least once.
func TestErrors(t *testing.T) {
	down := errors.New("connection refused")
	cases := map[string]struct {
		reason  string
		world   func(*world)
		changes map[string]string
		request func(*testing.T) *http.Request
		code    string
		status  int
	}{
		"no action":          {reason: "an action is required", changes: map[string]string{"Action": ""}, code: "MissingAction", status: 400},
		"other action":       {reason: "only one operation is served", changes: map[string]string{"Action": "GetCallerIdentity"}, code: "InvalidAction", status: 400},
		"no version":         {reason: "AWS requires it", changes: map[string]string{"Version": ""}, code: "MissingParameter", status: 400},
		"other version":      {reason: "no such operation in it", changes: map[string]string{"Version": "2010-05-08"}, code: "InvalidAction", status: 400},
		"no role":            {reason: "nothing to decide about", changes: map[string]string{"RoleArn": ""}, code: "MissingParameter", status: 400},
		"no session":         {reason: "AWS requires it", changes: map[string]string{"RoleSessionName": ""}, code: "MissingParameter", status: 400},
		"no token":           {reason: "nobody presented anything", changes: map[string]string{"WebIdentityToken": ""}, code: "MissingParameter", status: 400},
		"foreign role":       {reason: "one grammar", changes: map[string]string{"RoleArn": "arn:aws:iam::123456789012:role/admin"}, code: "ValidationError", status: 400},
		"odd session":        {reason: "it is echoed", changes: map[string]string{"RoleSessionName": "<a>"}, code: "ValidationError", status: 400},
		"short token":        {reason: "AWS's limits", changes: map[string]string{"WebIdentityToken": "abc"}, code: "ValidationError", status: 400},
		"long token":         {reason: "AWS's limits", changes: map[string]string{"WebIdentityToken": strings.Repeat("a", 20001)}, code: "ValidationError", status: 400},
		"duration no number": {reason: "whole seconds", changes: map[string]string{"DurationSeconds": "1h"}, code: "ValidationError", status: 400},
		"duration short":     {reason: "AWS's limits", changes: map[string]string{"DurationSeconds": "899"}, code: "ValidationError", status: 400},
		"duration long":      {reason: "AWS's limits", changes: map[string]string{"DurationSeconds": "43201"}, code: "ValidationError", status: 400},
		"large body":         {reason: "64 KiB", changes: map[string]string{"Other": strings.Repeat("a", 64<<10)}, code: "ValidationError", status: 400},
		"provider":           {reason: "not for these tokens", changes: map[string]string{"ProviderId": "www.example.com"}, code: "InvalidParameterCombination", status: 400},
		"policy":             {reason: "cannot be honoured", changes: map[string]string{"Policy": "{}"}, code: "MalformedPolicyDocument", status: 400},
		"policy arn":         {reason: "cannot be honoured", changes: map[string]string{"PolicyArns.member.1.arn": "arn:aws:iam::aws:policy/ReadOnly"}, code: "MalformedPolicyDocument", status: 400},
		"large policy":       {reason: "AWS's limit", changes: map[string]string{"Policy": strings.Repeat("a", 2049)}, code: "PackedPolicyTooLarge", status: 400},
		"garbage token":      {reason: "not even a JWT", changes: map[string]string{"WebIdentityToken": "garbage"}, code: "InvalidIdentityToken", status: 400},
		"expired token":      {reason: "the client should read the file again", changes: map[string]string{"WebIdentityToken": token(t, noon.Add(-time.Hour), names.Audience)}, code: "ExpiredTokenException", status: 400},
		"apiserver token":    {reason: "such tokens may live a year", changes: map[string]string{"WebIdentityToken": token(t, noon.Add(time.Hour), "https://kubernetes.default.svc")}, code: "IDPRejectedClaim", status: 403},
		"foreign token":      {reason: "nobody vouches for it", world: func(w *world) { w.reviewErr = sts.ErrTokenRefused }, code: "IDPRejectedClaim", status: 403},
		"audience ignored":   {reason: "a server that ignores audiences returns none", world: func(w *world) { w.identity.Audiences = nil }, code: "IDPRejectedClaim", status: 403},
		"a person":           {reason: "ServiceAccounts only", world: func(w *world) { w.identity.Username = "admin" }, code: "IDPRejectedClaim", status: 403},
		"no review":          {reason: "clients wait and try again", world: func(w *world) { w.reviewErr = down; w.limits.Request = 20 * time.Millisecond }, code: "IDPCommunicationError", status: 400},
		"no rights":          {reason: "RBAC decides", world: func(w *world) { w.granted = 0 }, code: "AccessDenied", status: 403},
		"read is not write":  {reason: "the suffix is what is asked", world: func(w *world) { w.granted = access.Read }, changes: map[string]string{"RoleArn": roleARN + "/write"}, code: "AccessDenied", status: 403},
		"no access review":   {reason: "nothing is known", world: func(w *world) { w.accessErr = down; w.limits.Request = 20 * time.Millisecond }, code: "ServiceUnavailable", status: 503},
		"no bucket known":    {reason: "nothing is known", world: func(w *world) { w.bucketErr = down; w.limits.Request = 20 * time.Millisecond }, code: "ServiceUnavailable", status: 503},
		"no key":             {reason: "our own fault", world: func(w *world) { w.issueErr = access.ErrEmptyRing }, code: "InternalFailure", status: 500},
		"source too fast":    {reason: "one bucket empty", world: func(w *world) { w.limits.Source = sts.Rate{PerSecond: 1, Burst: -1} }, code: "Throttling", status: 400},
		"subject too fast":   {reason: "one bucket empty", world: func(w *world) { w.limits.Subject = sts.Rate{PerSecond: 1, Burst: -1} }, code: "Throttling", status: 400},
		"put":                {reason: "GET and POST only", request: request(http.MethodPut, "/", ""), code: "InvalidAction", status: 405},
		"other path":         {reason: "nothing else is served", request: request(http.MethodPost, "/other", ""), code: "InvalidAction", status: 404},
		"bad query":          {reason: "must parse", request: request(http.MethodGet, "/?Action=%zz", ""), code: "MalformedQueryString", status: 404},
		"semicolons":         {reason: "parsers differ", request: request(http.MethodGet, "/?Action=a;Version=b", ""), code: "MalformedQueryString", status: 404},
		"bad body":           {reason: "must parse", request: request(http.MethodPost, "/", "Action=%zz"), code: "InvalidQueryParameter", status: 400},
		"body of a GET":      {reason: "refused, not ignored", request: request(http.MethodGet, "/", "Action=a"), code: "InvalidQueryParameter", status: 400},
		"twice":              {reason: "which one wins is anybody's guess", request: request(http.MethodGet, "/?Action=a&Action=a", ""), code: "InvalidParameterCombination", status: 400},
		"in both places":     {reason: "which one wins is anybody's guess", request: request(http.MethodPost, "/?Action=a", "Action=a"), code: "InvalidParameterCombination", status: 400},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			if c.world != nil {
				c.world(w)
			}
			r := post(t, form(t, c.changes))
			if c.request != nil {
				r = c.request(t)
			}
			recorder := serve(w.handler(), r)
			got := parse[failure](t, recorder)
			require.Equal(t, c.code, got.Code, c.reason)
			require.Equal(t, c.status, recorder.Code, c.reason)
			require.Equal(t, recorder.Code >= http.StatusInternalServerError, got.Type == "Receiver")
			require.Contains(t, w.logged(), c.code)
		})
	}
}

func request(method, target, body string) func(*testing.T) *http.Request {
	return func(t *testing.T) *http.Request {
		t.Helper()
		r := httptest.NewRequestWithContext(t.Context(), method, target, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		return r
	}
}

func TestOtherContentTypesAreRefused(t *testing.T) {
	for _, kind := range []string{"application/json", "multipart/form-data; boundary=x", ""} {
		r := post(t, form(t, nil))
		r.Header.Set("Content-Type", kind)
		got := parse[failure](t, serve(newWorld().handler(), r))
		assert.Equal(t, "InvalidQueryParameter", got.Code, kind)
	}
}

// TestForms has every way in which clients send the same request.
func TestForms(t *testing.T) {
	encoded := form(t, nil).Encode()
	bare := url.Values{"Action": {"AssumeRoleWithWebIdentity"}, "Version": {"2011-06-15"}, "WebIdentityToken": {goodToken(t) + "\n"}}.Encode()
	cases := map[string]struct {
		reason  string
		request func(*testing.T) *http.Request
		asked   access.Role
		arn     string
	}{
		"POST with a body":  {reason: "the SDKs", request: request(http.MethodPost, "/", encoded)},
		"GET with a query":  {reason: "small clients", request: request(http.MethodGet, "/?"+encoded, "")},
		"POST with a query": {reason: "AWS takes it", request: request(http.MethodPost, "/?"+encoded, "")},
		"role in the path": {
			reason: "clients without AWS_ROLE_ARN", request: request(http.MethodPost, "/role/d8-app/data", bare),
			arn: "arn:aws:sts::000000000000:assumed-role/d8-app/data/app",
		},
		"role in the path, slash": {
			reason: "clients append one", request: request(http.MethodPost, "/role/d8-app/data/read/", bare),
			asked: access.Role{Namespace: "d8-app", Name: "data", Permission: access.Read},
			arn:   "arn:aws:sts::000000000000:assumed-role/d8-app/data/app",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			recorder := serve(w.handler(), c.request(t))
			require.Equal(t, http.StatusOK, recorder.Code, recorder.Body.String())
			if c.asked == (access.Role{}) {
				c.asked = access.Role{Namespace: "d8-app", Name: "data"}
			}
			if c.arn == "" {
				c.arn = "arn:aws:sts::000000000000:assumed-role/d8-app/data/session-1"
			}
			assert.Equal(t, c.asked, w.asked, c.reason)
			assert.Equal(t, c.arn, parse[answer](t, recorder).ARN, c.reason)
		})
	}
}

func TestPathAndRoleArnMustAgree(t *testing.T) {
	r := request(http.MethodPost, "/role/d8-app/other", form(t, nil).Encode())(t)
	require.Equal(t, "InvalidParameterCombination", parse[failure](t, serve(newWorld().handler(), r)).Code)
}

func TestLifetime(t *testing.T) {
	cases := map[string]struct {
		reason   string
		limit    time.Duration
		duration string
		life     time.Duration
	}{
		"default":       {reason: "30 minutes less the margin", limit: 30 * time.Minute, life: 29*time.Minute + 30*time.Second},
		"shorter":       {reason: "as asked", limit: 30 * time.Minute, duration: "900", life: 14*time.Minute + 30*time.Second},
		"clamped":       {reason: "the truth is told", limit: 30 * time.Minute, duration: "43200", life: 29*time.Minute + 30*time.Second},
		"short lived":   {reason: "a module set to seconds", limit: 20 * time.Second, life: 18 * time.Second},
		"short clamped": {reason: "AWS's minimum is no minimum of ours", limit: 20 * time.Second, duration: "900", life: 18 * time.Second},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.lifetime = c.limit
			got := parse[answer](t, serve(w.handler(), post(t, form(t, map[string]string{"DurationSeconds": c.duration}))))
			require.Equal(t, noon.Add(c.life), got.Credentials.Expiration, c.reason)
		})
	}
}

func TestShortOutageIsNotSeen(t *testing.T) {
	w := newWorld()
	w.failReview = 2
	recorder := serve(w.handler(), post(t, form(t, nil)))
	require.Equal(t, http.StatusOK, recorder.Code, "some clients never try again")
	require.Equal(t, 3, w.reviews)
}

func TestInFlightIsCapped(t *testing.T) {
	w := newWorld()
	w.limits.InFlight = 1
	w.held, w.reviewing = make(chan struct{}), make(chan struct{}, 1)
	h := w.handler()
	first := make(chan *httptest.ResponseRecorder)
	request := post(t, form(t, nil))
	go func() { first <- serve(h, request) }()
	<-w.reviewing
	require.Equal(t, "Throttling", parse[failure](t, serve(h, post(t, form(t, nil)))).Code)
	close(w.held)
	require.Equal(t, http.StatusOK, (<-first).Code)
}

func TestRefusedEarlyCostsNoReview(t *testing.T) {
	w := newWorld()
	serve(w.handler(), post(t, form(t, map[string]string{"WebIdentityToken": token(t, noon.Add(time.Hour), "other")})))
	require.Zero(t, w.reviews)
}

func TestLogTellsTheKeyAndKeepsSecrets(t *testing.T) {
	w := newWorld()
	values := form(t, nil)
	got := parse[answer](t, serve(w.handler(), request(http.MethodGet, "/?"+values.Encode(), "")(t)))
	line := w.logged()
	require.Equal(t, 1, strings.Count(line, "\n"), "one line for a key")
	require.NotEmpty(t, got.Credentials.AccessKeyID)
	for _, want := range []string{got.Credentials.AccessKeyID, "d8-app/app", "app-0", "pod-uid-1", bucket, "read,write", "2026-03-01T12:30:00Z"} {
		require.Contains(t, line, want)
	}
	for _, secret := range []string{values.Get("WebIdentityToken"), got.Credentials.SecretAccessKey, got.Credentials.SessionToken} {
		require.NotContains(t, line, secret)
	}
}

// stalled is a body that stops arriving.
type stalled struct{}

func (stalled) Read([]byte) (int, error) { return 0, os.ErrDeadlineExceeded }

func TestASlowBodyIsNotALargeOne(t *testing.T) {
	w := newWorld()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", io.MultiReader(strings.NewReader("Action="), stalled{}))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	got := parse[failure](t, serve(w.handler(), r))
	require.Equal(t, "RequestTimeout", got.Code, "SDKs send it again")
	require.Zero(t, w.reviews)
}

func TestWhoGotAKeyIsTold(t *testing.T) {
	w := newWorld()
	w.granted = access.Read
	serve(w.handler(), post(t, form(t, nil)))
	require.Equal(t, []sts.Issued{{
		Identity: w.identity, Namespace: "d8-app", Name: "data", Bucket: bucket, Permission: access.Read, Expires: noon.Add(30 * time.Minute),
	}}, w.told)
	w.granted = 0
	serve(w.handler(), post(t, form(t, nil)))
	require.Len(t, w.told, 1, "no key, nothing to tell")
}

func TestEachRequestIsCountedOnce(t *testing.T) {
	w := newWorld()
	require.Equal(t, http.StatusOK, serve(w.handler(), post(t, form(t, nil))).Code)
	w.granted = 0
	require.Equal(t, http.StatusForbidden, serve(w.handler(), post(t, form(t, nil))).Code)
	require.Equal(t, []string{"OK", "AccessDenied"}, w.counted)
}

func TestTheAuditLineNamesTheKeyAsGatewaysDo(t *testing.T) {
	w := newWorld()
	got := parse[answer](t, serve(w.handler(), post(t, form(t, nil))))
	require.Contains(t, w.logged(), `"key"="`+access.KeyName(got.Credentials.AccessKeyID)+`"`)
	require.Contains(t, w.logged(), `"subject"="`+access.SubjectTag(userApp).String()+`"`)
}
