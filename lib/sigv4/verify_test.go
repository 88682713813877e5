package sigv4

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/lib/access"
)

const object = "https://examplebucket.s3.amazonaws.com/a/b"

func codeOf(t *testing.T, err error) string {
	t.Helper()
	var e access.Error
	require.ErrorAs(t, err, &e, "every refusal carries what to answer")
	return e.Code
}

func TestVerifyRefusesHeaders(t *testing.T) {
	client := newClient()
	edit := func(name, old, to string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, strings.Replace(r.Header.Get(name), old, to, 1)) }
	}
	auth := func(old, to string) func(*http.Request) { return edit("Authorization", old, to) }
	cases := map[string]struct {
		change func(*http.Request)
		want   access.Error
		reason string
	}{
		"nothing":                  {func(*http.Request) {}, access.Error{}, "the base of all below"},
		"unsigned":                 {func(r *http.Request) { r.Header.Del("Authorization") }, access.ErrDenied, "no anonymous access"},
		"path changed":             {func(r *http.Request) { r.RequestURI = "/a/c" }, access.ErrSignature, "covered"},
		"path in another spelling": {func(r *http.Request) { r.RequestURI = "/a/%62" }, access.Error{}, "the same object"},
		"slash encoded":            {func(r *http.Request) { r.RequestURI = "/a%2Fb" }, access.Error{}, "the same object"},
		"slash doubled":            {func(r *http.Request) { r.RequestURI = "/a//b" }, access.ErrSignature, "another object"},
		"query added":              {func(r *http.Request) { r.RequestURI += "?acl" }, access.ErrSignature, "covered"},
		"method changed":           {func(r *http.Request) { r.Method = "DELETE" }, access.ErrSignature, "covered"},
		"host changed":             {func(r *http.Request) { r.Host = "other.s3.amazonaws.com" }, access.ErrSignature, "covered: it names the bucket"},
		"hash changed":             {edit("X-Amz-Content-Sha256", "e3", "e4"), access.ErrSignature, "covered"},
		"hash dropped":             {func(r *http.Request) { r.Header.Del("X-Amz-Content-Sha256") }, access.ErrInvalidRequest, "required"},
		"hash twice":               {func(r *http.Request) { r.Header.Add("X-Amz-Content-Sha256", unsignedPayload) }, access.ErrInvalidArgument, "which one?"},
		"meta changed":             {edit("X-Amz-Meta-A", "1", "2"), access.ErrSignature, "covered"},
		"meta added":               {func(r *http.Request) { r.Header.Set("X-Amz-Meta-B", "1") }, access.ErrDenied, "must be signed"},
		"copy source added":        {func(r *http.Request) { r.Header.Set("X-Amz-Copy-Source", "/x/y") }, access.ErrDenied, "must be signed"},
		"meta dropped":             {func(r *http.Request) { r.Header.Del("X-Amz-Meta-A") }, access.ErrSignature, "covered"},
		"unsigned header added":    {func(r *http.Request) { r.Header.Set("X-Forwarded-For", "1") }, access.Error{}, "proxies do"},
		"trace id added":           {func(r *http.Request) { r.Header.Set("X-Amzn-Trace-Id", "1") }, access.Error{}, "proxies do"},
		"another key":              {auth(exampleID, "AKIAOTHER"), access.ErrUnknownKey, "the lookup's error"},
		"signature changed":        {auth("Signature=", "Signature=0"), access.ErrAuthHeader, "65 digits"},
		"signature not hex": {func(r *http.Request) {
			a := r.Header.Get("Authorization")
			r.Header.Set("Authorization", a[:len(a)-1]+"g")
		}, access.ErrAuthHeader, "no digit"},
		"signature wrong":      {func(r *http.Request) { r.Header.Set("Authorization", flipHex(r.Header.Get("Authorization"))) }, access.ErrSignature, "wrong"},
		"region changed":       {auth("/us-east-1/", "/eu-west-1/"), access.ErrSignature, "covered"},
		"no region":            {auth("/us-east-1/", "//"), access.ErrAuthHeader, "malformed"},
		"service":              {auth("/s3/", "/sts/"), access.ErrAuthHeader, "signed for another service"},
		"scope's date":         {auth("/20130524/", "/20130523/"), access.ErrAuthHeader, "another day's key"},
		"scope's end":          {auth("/aws4_request", "/aws4"), access.ErrAuthHeader, "malformed"},
		"scope's parts":        {auth("/us-east-1/s3", "/us-east-1/s3/s3"), access.ErrAuthHeader, "malformed"},
		"host not signed":      {auth("host;", ""), access.ErrAuthHeader, "must be signed"},
		"header signed twice":  {auth("host;", "host;host;"), access.ErrAuthHeader, "once"},
		"header in upper case": {auth("host;", "Host;"), access.ErrAuthHeader, "lower case"},
		"no signed headers":    {auth("SignedHeaders=", "SignedHeaders=,X="), access.ErrAuthHeader, "must be signed"},
		"credential twice":     {auth("SignedHeaders=", "Credential=x,SignedHeaders="), access.ErrAuthHeader, "which one?"},
		"field without value":  {auth("SignedHeaders=", "x,SignedHeaders="), access.ErrAuthHeader, "malformed"},
		"scheme only":          {func(r *http.Request) { r.Header.Set("Authorization", "AWS4-HMAC-SHA256") }, access.ErrAuthHeader, "malformed"},
		"version 2":            {func(r *http.Request) { r.Header.Set("Authorization", "AWS "+exampleID+":abc=") }, access.ErrInvalidRequest, "says what to use"},
		"version 4a":           {auth("AWS4-HMAC-SHA256", "AWS4-ECDSA-P256-SHA256"), access.ErrInvalidRequest, "says what to use"},
		"bearer":               {func(r *http.Request) { r.Header.Set("Authorization", "Bearer x") }, access.ErrInvalidRequest, "says what to use"},
		"authorization twice":  {func(r *http.Request) { r.Header.Add("Authorization", r.Header.Get("Authorization")) }, access.ErrAuthHeader, "which one?"},
		"both forms":           {func(r *http.Request) { r.RequestURI += "?X-Amz-Signature=x" }, access.ErrInvalidArgument, "which one?"},
		"date changed":         {edit("X-Amz-Date", "T000000Z", "T000001Z"), access.ErrSignature, "covered"},
		"date in another form": {edit("X-Amz-Date", exampleDate, "Fri, 24 May 2013 00:00:00 GMT"), access.ErrDenied, "not its form"},
		"date dropped":         {func(r *http.Request) { r.Header.Del("X-Amz-Date") }, access.ErrDenied, "required"},
		"date by Date": {func(r *http.Request) {
			r.Header.Del("X-Amz-Date")
			r.Header.Set("Date", "Fri, 24 May 2013 00:00:00 GMT")
		}, access.ErrSignature, "read, but not what was signed"},
		"token twice":               {func(r *http.Request) { r.Header["X-Amz-Security-Token"] = []string{"a", "b"} }, access.ErrDenied, "not signed"},
		"bad escape":                {func(r *http.Request) { r.RequestURI = "/a%2" }, access.ErrInvalidURI, "no path"},
		"bad escape in query":       {func(r *http.Request) { r.RequestURI += "?a=%zz" }, access.ErrInvalidURI, "no query"},
		"not UTF-8":                 {func(r *http.Request) { r.RequestURI = "/a%ff" }, access.ErrInvalidURI, "keys are text"},
		"absolute form":             {func(r *http.Request) { r.RequestURI = "http://examplebucket.s3.amazonaws.com/a/b" }, access.Error{}, "as to a proxy"},
		"absolute form, other path": {func(r *http.Request) { r.RequestURI = "http://examplebucket.s3.amazonaws.com?x" }, access.ErrSignature, "the root"},
		"length unknown":            {func(r *http.Request) { r.ContentLength = -1 }, access.ErrMissingLength, "S3 wants a length"},
		"trailer without chunks":    {func(r *http.Request) { r.Header["X-Amz-Trailer"] = []string{"x-amz-checksum-crc32"} }, access.ErrDenied, "not signed"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := client.sign(t, "GET", object, "", nil, "X-Amz-Meta-A: 1")
			c.change(r)
			verified, err := exampleVerifier().Verify(r, exampleTime)
			if c.want.Code == "" {
				require.NoError(t, err, c.reason)
				assert.Equal(t, "a/b", verified.Key)
				return
			}
			require.Equal(t, c.want.Code, codeOf(t, err), c.reason)
			assert.Nil(t, verified)
		})
	}
}

// flipHex changes the last digit of a signature.
func flipHex(s string) string {
	last := byte('0')
	if s[len(s)-1] == '0' {
		last = '1'
	}
	return s[:len(s)-1] + string(last)
}

func TestAnyRegionWillDo(t *testing.T) {
	for _, region := range []string{"us-east-1", "system-s3", "eu-west-1", "garage", "local"} {
		client := newClient()
		client.region = region
		verified, err := exampleVerifier().Verify(client.sign(t, "GET", object, "", nil), exampleTime)
		require.NoError(t, err, "clients that have the region %s built in work", region)
		assert.Equal(t, "a/b", verified.Key)
		_, err = exampleVerifier().Verify(client.presign(t, "GET", object, time.Hour), exampleTime)
		require.NoError(t, err)
	}
}

func TestClockSkew(t *testing.T) {
	for now, want := range map[time.Duration]bool{
		0: true, 15 * time.Minute: true, -15 * time.Minute: true, 15*time.Minute + time.Second: false, -15*time.Minute - time.Second: false,
	} {
		_, err := exampleVerifier().Verify(newClient().sign(t, "GET", object, "", nil), exampleTime.Add(now))
		if want {
			require.NoError(t, err, now)
		} else {
			require.ErrorIs(t, err, access.ErrTimeSkewed, now)
		}
	}
}

func TestPresigned(t *testing.T) {
	client := newClient()
	cases := map[string]struct {
		after  time.Duration
		change func(string) string
		want   access.Error
		reason string
	}{
		"fresh":              {0, nil, access.Error{}, "valid"},
		"to the end":         {59 * time.Minute, nil, access.Error{}, "valid"},
		"over":               {60 * time.Minute, nil, access.ErrDenied, "expired"},
		"long over":          {9000 * time.Hour, nil, access.ErrDenied, "expired"},
		"from tomorrow":      {-16 * time.Minute, nil, access.ErrDenied, "not valid yet"},
		"clock a bit behind": {-14 * time.Minute, nil, access.Error{}, "clocks differ"},
		"longer":             {0, replace("X-Amz-Expires=3600", "X-Amz-Expires=3601"), access.ErrSignature, "covered"},
		"too long":           {0, replace("X-Amz-Expires=3600", "X-Amz-Expires=604801"), access.ErrAuthQuery, "a week at most"},
		"zero":               {0, replace("X-Amz-Expires=3600", "X-Amz-Expires=0"), access.ErrAuthQuery, "a second at least"},
		"negative":           {0, replace("X-Amz-Expires=3600", "X-Amz-Expires=-1"), access.ErrAuthQuery, "a number"},
		"no expiry":          {0, replace("X-Amz-Expires=3600", "a=b"), access.ErrAuthQuery, "required"},
		"expiry twice":       {0, replace("X-Amz-Expires=3600", "X-Amz-Expires=3600&X-Amz-Expires=3601"), access.ErrAuthQuery, "which one?"},
		"parameter added":    {0, func(s string) string { return s + "&versionId=null" }, access.ErrSignature, "covered"},
		"parameter reordered": {0, func(s string) string {
			p, q, _ := strings.Cut(s, "?")
			a, b, _ := strings.Cut(q, "&")
			return p + "?" + b + "&" + a
		}, access.Error{}, "sorted before signing"},
		"header by query":       {0, func(s string) string { return s + "&x-amz-copy-source=/x/y" }, access.ErrSignature, "covered"},
		"signature changed":     {0, flipHex, access.ErrSignature, "wrong"},
		"no signature":          {0, replace("X-Amz-Signature=", "X-Amz-Sig="), access.ErrAuthQuery, "required"},
		"no algorithm":          {0, replace("X-Amz-Algorithm=AWS4-HMAC-SHA256", "a=b"), access.ErrAuthQuery, "required"},
		"another algorithm":     {0, replace("AWS4-HMAC-SHA256", "AWS4-ECDSA-P256-SHA256"), access.ErrAuthQuery, "one"},
		"another region":        {0, replace("us-east-1", "eu-west-1"), access.ErrSignature, "covered"},
		"date in another form":  {0, replace(exampleDate, "2013-05-24"), access.ErrAuthQuery, "not its form"},
		"version 2":             {0, func(string) string { return "/a/b?AWSAccessKeyId=x&Expires=1&Signature=y" }, access.ErrInvalidRequest, "says what to use"},
		"path changed":          {0, replace("/a/b", "/a/c"), access.ErrSignature, "covered"},
		"lower-case algorithm":  {0, replace("X-Amz-Algorithm", "x-amz-algorithm"), access.ErrAuthQuery, "names have case"},
		"empty signed headers":  {0, replace("X-Amz-SignedHeaders=host", "X-Amz-SignedHeaders="), access.ErrAuthQuery, "required"},
		"credential in pieces":  {0, replace("%2F20130524", "%2F%2F20130524"), access.ErrAuthQuery, "malformed"},
		"encoded parameter":     {0, replace("X-Amz-Expires", "X-Amz-Expire%73"), access.Error{}, "the same parameter"},
		"empty query parts":     {0, func(s string) string { return s + "&&" }, access.Error{}, "nothing in them"},
		"semicolon in the last": {0, func(s string) string { return s + ";x=y" }, access.ErrAuthQuery, "no separator"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := client.presign(t, "GET", object, time.Hour)
			if c.change != nil {
				r.RequestURI = c.change(r.RequestURI)
			}
			verified, err := exampleVerifier().Verify(r, exampleTime.Add(c.after))
			if c.want.Code != "" {
				require.Equal(t, c.want.Code, codeOf(t, err), c.reason)
				return
			}
			require.NoError(t, err, c.reason)
			assert.Equal(t, FormPresigned, verified.Form)
			assert.Empty(t, verified.Query, "nothing of the signature goes on")
		})
	}
}

func TestPresignedHeaders(t *testing.T) {
	client := newClient()
	r := client.presign(t, "PUT", object+"?x-amz-meta-owner=me", time.Hour, "X-Amz-Acl: private", "X-Amz-Mp-Object-Size: 5", "Content-Type: text/plain")
	assert.Contains(t, r.RequestURI, "X-Amz-Mp-Object-Size=5", "the SDK puts it into the query")
	verified, err := exampleVerifier().Verify(r, exampleTime)
	require.NoError(t, err)
	assert.Equal(t, "me", verified.Header.Get("X-Amz-Meta-Owner"), "Garage must see it")
	assert.Equal(t, "5", verified.Header.Get("X-Amz-Mp-Object-Size"), "Garage must see it")
	assert.Equal(t, "private", verified.Header.Get("X-Amz-Acl"))
	assert.Empty(t, verified.Query)

	r.Header.Set("X-Amz-Meta-Owner", "you")
	_, err = exampleVerifier().Verify(r, exampleTime)
	require.Error(t, err, "an unsigned header must not win over what was signed")

	r = client.presign(t, "GET", object, time.Hour)
	r.Header.Set("X-Amz-Security-Token", "late")
	_, err = exampleVerifier().Verify(r, exampleTime)
	require.ErrorIs(t, err, access.ErrDenied, "every x-amz header must be signed")
}

func TestHoistedHeadersCannotBreakOut(t *testing.T) {
	for _, q := range []pair{{"X-Amz-Meta-A", "1\r\nX-Evil: 1"}, {"X-Amz-Meta A", "1"}, {"X-Amz-Meta-A", "1\x00"}} {
		_, err := hoist(pairs{q}, http.Header{})
		require.ErrorIs(t, err, access.ErrInvalidArgument, q)
	}
	_, err := hoist(pairs{{"x-amz-meta-a", "1"}, {"X-Amz-Meta-A", "2"}}, http.Header{})
	require.ErrorIs(t, err, access.ErrInvalidRequest, "one value only")
}

func TestSessionTokenIsHandedOn(t *testing.T) {
	r := newClient().sign(t, "GET", object, "", nil, "X-Amz-Security-Token: token")
	verified, err := exampleVerifier().Verify(r, exampleTime)
	require.NoError(t, err)
	assert.Equal(t, "token", verified.SessionToken)
	assert.Empty(t, verified.Header.Get("X-Amz-Security-Token"), "Garage has no use for it")

	verified, err = exampleVerifier().Verify(newClient().presign(t, "GET", object, time.Hour, "X-Amz-Security-Token: token"), exampleTime)
	require.NoError(t, err)
	assert.Equal(t, "token", verified.SessionToken)
}

func TestPayloadModes(t *testing.T) {
	cases := map[string]struct {
		hash    string
		headers []string
		want    access.Error
		reason  string
	}{
		"unsigned":               {unsignedPayload, nil, access.Error{}, "TLS protects it"},
		"upper-case hash":        {strings.ToUpper(emptySum), nil, access.Error{}, "hexadecimal"},
		"streaming, unsigned":    {"STREAMING-UNSIGNED-PAYLOAD", nil, access.ErrInvalidArgument, "no such mode"},
		"streaming, 4a":          {"STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD", nil, access.ErrInvalidArgument, "not supported"},
		"short hash":             {"abc", nil, access.ErrInvalidArgument, "not a hash"},
		"no decoded length":      {signedChunks, nil, access.ErrMissingLength, "required"},
		"decoded length no word": {signedChunks, []string{"X-Amz-Decoded-Content-Length: many"}, access.ErrInvalidArgument, "a number"},
		"decoded length minus":   {signedChunks, []string{"X-Amz-Decoded-Content-Length: -1"}, access.ErrInvalidArgument, "a number"},
		"decoded length huge":    {signedChunks, []string{"X-Amz-Decoded-Content-Length: 9223372036854775808"}, access.ErrInvalidArgument, "does not fit"},
		"decoded length large":   {signedChunks, []string{"X-Amz-Decoded-Content-Length: 5497558138881"}, access.ErrTooLarge, "5 TiB"},
		"unknown trailer":        {unsignedChunksTrailer, []string{"X-Amz-Decoded-Content-Length: 1", "X-Amz-Trailer: x-amz-meta-a"}, access.ErrInvalidRequest, "Garage takes checksums"},
		"two trailers":           {unsignedChunksTrailer, []string{"X-Amz-Decoded-Content-Length: 1", "X-Amz-Trailer: x-amz-checksum-crc32,x-amz-checksum-sha1"}, access.ErrInvalidRequest, "Garage takes one"},
		"trailer, plain payload": {unsignedPayload, []string{"X-Amz-Trailer: x-amz-checksum-crc32"}, access.ErrInvalidRequest, "there is no trailer"},
		"trailer, no trailer":    {signedChunks, []string{"X-Amz-Decoded-Content-Length: 1", "X-Amz-Trailer: x-amz-checksum-crc32"}, access.ErrInvalidRequest, "there is no trailer"},
		"no trailer named":       {signedChunksTrailer, []string{"X-Amz-Decoded-Content-Length: 1"}, access.ErrInvalidRequest, "required"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := exampleVerifier().Verify(newClient().sign(t, "PUT", object, c.hash, nil, c.headers...), exampleTime)
			if c.want.Code == "" {
				require.NoError(t, err, c.reason)
				return
			}
			require.Equal(t, c.want.Code, codeOf(t, err), c.reason)
		})
	}
}

func TestContentEncodingKeepsTheRest(t *testing.T) {
	for sent, want := range map[string]string{
		"aws-chunked": "", "aws-chunked,gzip": "gzip", "gzip, aws-chunked": "gzip", "AWS-Chunked , gzip,br": "gzip,br", "": "", "gzip": "gzip",
	} {
		header := http.Header{"Content-Encoding": {sent}}
		stripChunked(header)
		assert.Equal(t, want, header.Get("Content-Encoding"), sent)
	}
}

// Whatever the SDK's signer signs, the verifier accepts, and one flipped character of the key's secret it refuses.
func TestVerifierAgreesWithTheSDK(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	alphabet := []rune("abcXYZ019-._~ !\"#$%&'()*+,/:;<=>?@[\\]^`{|}\u00f6\u0436\u6f22\U0001f600")
	word := func(n int) string {
		var out strings.Builder
		for range 1 + random.IntN(n) {
			out.WriteRune(alphabet[random.IntN(len(alphabet))])
		}
		return out.String()
	}
	for range 3000 {
		key := strings.TrimLeft(word(20), "/")
		if key == "" {
			continue
		}
		query := url.Values{}
		for range random.IntN(4) {
			query.Add(word(5), word(5))
		}
		u := url.URL{Scheme: "https", Host: "s3.amazonaws.com", Path: "/examplebucket/" + key, RawPath: "/examplebucket/" + escape(key, true)}
		target := u.String()
		if len(query) > 0 {
			target += "?" + strings.ReplaceAll(query.Encode(), "+", "%20")
		}
		meta := strings.Join(strings.Fields(strings.Map(func(r rune) rune {
			if r > '~' {
				return 'u'
			}
			return r
		}, word(10))), "  ")
		client := newClient()
		requests := map[string]*http.Request{
			"header":    client.sign(t, "PUT", target, "", []byte(word(5)), "X-Amz-Meta-A: "+meta, "X-Amz-Meta-B: x", "X-Amz-Meta-B: y"),
			"presigned": client.presign(t, "GET", u.String(), time.Hour, "X-Amz-Meta-A: "+strings.TrimSpace(meta)),
		}
		for form, r := range requests {
			what := fmt.Sprintf("%s %s meta %q", form, r.RequestURI, meta)
			verified, err := exampleVerifier().Verify(r, exampleTime)
			require.NoError(t, err, what)
			require.Equal(t, key, verified.Key, what)
			require.Equal(t, "examplebucket", verified.Bucket, what)
			verifier := exampleVerifier()
			verifier.Lookup = func(string) (string, error) { return exampleSecret[1:], nil }
			_, err = verifier.Verify(r, exampleTime)
			require.ErrorIs(t, err, access.ErrSignature, what)
		}
	}
}
