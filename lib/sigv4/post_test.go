package sigv4

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/lib/access"
)

// story of a form: what the policy says and what is sent.
type postForm struct {
	expires    string
	conditions []string
	fields     [][2]string // in order; the signature's are added
	filename   string
	file       string
	policy     string // in place of the one made of conditions
	change     func(*http.Request)
	cut        int // bytes missing at the end
	target     string
	secret     string
}

func simpleForm() *postForm {
	return &postForm{
		expires:    "2013-05-24T01:00:00.000Z",
		conditions: []string{`{"bucket":"examplebucket"}`, `["starts-with","$key","user/"]`, `{"x-amz-algorithm":"AWS4-HMAC-SHA256"}`, `["eq","$x-amz-credential","` + exampleScope + `"]`, `{"x-amz-date":"` + exampleDate + `"}`},
		fields:     [][2]string{{"key", "user/${filename}"}},
		filename:   "photo.jpg", file: "the file's bytes", target: "/examplebucket", secret: exampleSecret,
	}
}

func (f *postForm) allow(condition string) *postForm {
	f.conditions = append(f.conditions, condition)
	return f
}

func (f *postForm) field(name, value string) *postForm {
	f.fields = append(f.fields, [2]string{name, value})
	return f
}

func (f *postForm) with(change func(*postForm)) *postForm {
	change(f)
	return f
}

func (f *postForm) request(t *testing.T) *http.Request {
	t.Helper()
	policy := f.policy
	if policy == "" {
		policy = `{"expiration":"` + f.expires + `","conditions":[` + strings.Join(f.conditions, ",") + `]}`
	}
	encoded := base64.StdEncoding.EncodeToString([]byte(policy))
	key := scope{date: "20130524", region: "us-east-1", service: "s3"}.key(f.secret)
	fields := append([][2]string{}, f.fields...)
	fields = append(fields, [][2]string{
		{"X-Amz-Algorithm", algorithm},
		{"X-Amz-Credential", exampleScope},
		{"X-Amz-Date", exampleDate},
		{"Policy", encoded},
		{"X-Amz-Signature", hex.EncodeToString(mac(key, []byte(encoded)))},
	}...)
	var body bytes.Buffer
	writer := multipart.NewWriter(&body)
	for _, field := range fields {
		require.NoError(t, writer.WriteField(field[0], field[1]))
	}
	file, err := writer.CreateFormFile("file", f.filename)
	require.NoError(t, err)
	_, err = io.WriteString(file, f.file)
	require.NoError(t, err)
	require.NoError(t, writer.WriteField("submit", "fields behind the file do not count"))
	require.NoError(t, writer.Close())
	r := httptest.NewRequest(http.MethodPost, "http://s3.amazonaws.com/", bytes.NewReader(body.Bytes()[:body.Len()-f.cut]))
	r.RequestURI, r.Host = f.target, "s3.amazonaws.com"
	r.Header.Set("Content-Type", writer.FormDataContentType())
	if f.change != nil {
		f.change(r)
	}
	return r
}

func TestPostForm(t *testing.T) {
	form := simpleForm().allow(`["starts-with","$Content-Type","image/"]`).allow(`{"success_action_status":"201"}`).allow(`{"acl":"private"}`).
		allow(`["starts-with","$x-amz-meta-tag",""]`).allow(`["content-length-range",1,100]`).allow(`{"x-amz-security-token":"token"}`).
		field("Content-Type", "image/jpeg").field("success_action_status", "201").field("acl", "private").field("x-amz-meta-tag", "t").
		field("x-amz-security-token", "token").field("x-ignore-this", "anything").field("bucket", "examplebucket")
	r := form.request(t)
	r.Header.Set("X-Amz-Copy-Source", "/other/secret")
	verified, err := exampleVerifier().Verify(r, exampleTime)
	require.NoError(t, err)
	assert.Equal(t, Identity{AccessKeyID: exampleID, SessionToken: "token", Form: FormPost, Payload: PayloadUnsigned}, verified.Identity)
	assert.Equal(t, "PUT examplebucket user/photo.jpg", verified.Method+" "+verified.Bucket+" "+verified.Key)
	assert.Equal(t, http.Header{"Content-Type": {"image/jpeg"}, "X-Amz-Acl": {"private"}, "X-Amz-Meta-Tag": {"t"}}, verified.Header, "nothing from the request's own headers")
	assert.Equal(t, &Post{Status: 201}, verified.Post)
	assert.Equal(t, int64(-1), verified.Body.Length())
	data, err := io.ReadAll(verified.Body)
	require.NoError(t, err)
	assert.Equal(t, form.file, string(data))
	op, err := access.Classify(verified.Request())
	require.NoError(t, err)
	assert.Equal(t, "PutObject", op.Name)
}

func TestPostFormRefused(t *testing.T) {
	cases := map[string]struct {
		form   *postForm
		want   access.Error
		reason string
	}{
		"as it should be":       {simpleForm(), access.Error{}, "the base of all below"},
		"exact key":             {simpleForm().with(func(f *postForm) { f.fields[0][1] = "user/x" }), access.Error{}, "within the prefix"},
		"key outside":           {simpleForm().with(func(f *postForm) { f.fields[0][1] = "other/x" }), access.ErrDenied, "not within the prefix"},
		"key escapes by file":   {simpleForm().with(func(f *postForm) { f.fields[0][1] = "${filename}"; f.filename = "evil" }), access.ErrDenied, "checked with the file's name in it"},
		"no key":                {simpleForm().with(func(f *postForm) { f.fields = nil }), access.ErrInvalidArgument, "required"},
		"long key":              {simpleForm().with(func(f *postForm) { f.fields[0][1] = "user/" + strings.Repeat("k", 467) }), access.ErrKeyTooLong, "as anywhere"},
		"key not UTF-8":         {simpleForm().with(func(f *postForm) { f.fields[0][1] = "user/\xff" }), access.ErrInvalidArgument, "keys are text"},
		"key twice":             {simpleForm().field("Key", "other/x"), access.ErrMalformedPOST, "which one?"},
		"another bucket":        {simpleForm().with(func(f *postForm) { f.target = "/otherbucket" }), access.ErrDenied, "the policy names one"},
		"bucket field lies":     {simpleForm().field("bucket", "examplebucket").with(func(f *postForm) { f.target = "/otherbucket" }), access.ErrDenied, "the address counts, not the field"},
		"field not allowed":     {simpleForm().field("acl", "private"), access.ErrDenied, "not named by the policy"},
		"condition not met":     {simpleForm().allow(`{"acl":"private"}`), access.ErrDenied, "required by the policy"},
		"condition violated":    {simpleForm().allow(`{"acl":"private"}`).field("acl", "public-read"), access.ErrDenied, "forbidden by the policy"},
		"one of two violated":   {simpleForm().allow(`["starts-with","$key","user/p"]`).allow(`["eq","$key","user/q"]`), access.ErrDenied, "all must hold"},
		"content types":         {simpleForm().allow(`["starts-with","$Content-Type","image/"]`).field("Content-Type", "image/png,text/html"), access.ErrDenied, "each of the list"},
		"expired":               {simpleForm().with(func(f *postForm) { f.expires = "2013-05-24T00:00:00Z" }), access.ErrDenied, "over"},
		"no expiry":             {simpleForm().with(func(f *postForm) { f.policy = `{"conditions":[]}` }), access.ErrPolicy, "required"},
		"no conditions":         {simpleForm().with(func(f *postForm) { f.policy = `{"expiration":"2013-05-24T01:00:00Z"}` }), access.ErrPolicy, "required"},
		"unknown operator":      {simpleForm().allow(`["ends-with","$key","x"]`), access.ErrPolicy, "not understood is not allowed"},
		"condition on two":      {simpleForm().allow(`{"a":"b","c":"d"}`), access.ErrPolicy, "one each"},
		"condition empty":       {simpleForm().allow(`{}`), access.ErrPolicy, "one each"},
		"condition of numbers":  {simpleForm().allow(`["eq","$key",5]`), access.ErrPolicy, "text"},
		"no dollar":             {simpleForm().allow(`["eq","key","user/photo.jpg"]`), access.ErrPolicy, "not understood"},
		"four parts":            {simpleForm().allow(`["eq","$key","a","b"]`), access.ErrPolicy, "not understood"},
		"range backwards":       {simpleForm().allow(`["content-length-range",5,1]`), access.ErrPolicy, "empty"},
		"range negative":        {simpleForm().allow(`["content-length-range",-1,5]`), access.ErrPolicy, "not a size"},
		"not JSON":              {simpleForm().with(func(f *postForm) { f.policy = "{" }), access.ErrPolicy, "not a policy"},
		"JSON and more":         {simpleForm().with(func(f *postForm) { f.policy = `{"expiration":"2013-05-24T01:00:00Z","conditions":[]} {}` }), access.ErrPolicy, "two parsers, two policies"},
		"unknown member":        {simpleForm().with(func(f *postForm) { f.policy = `{"expiration":"2013-05-24T01:00:00Z","conditions":[],"effect":"deny"}` }), access.ErrPolicy, "not understood"},
		"wrong secret":          {simpleForm().with(func(f *postForm) { f.secret = "x" }), access.ErrSignature, "not signed by the key"},
		"query parameter":       {simpleForm().with(func(f *postForm) { f.target += "?uploadId=u&partNumber=1" }), access.ErrMethod, "no policy covers it"},
		"key in the path":       {simpleForm().with(func(f *postForm) { f.target += "/user/x" }), access.ErrMethod, "forms go to buckets"},
		"to the service":        {simpleForm().with(func(f *postForm) { f.target = "/" }), access.ErrMethod, "forms go to buckets"},
		"copies":                {simpleForm().allow(`["starts-with","$x-amz-copy-source",""]`).field("x-amz-copy-source", "/examplebucket/secret"), access.ErrInvalidArgument, "a form uploads"},
		"header breaks out":     {simpleForm().allow(`["starts-with","$x-amz-meta-a",""]`).field("x-amz-meta-a", "1\r\nX-Evil: 1"), access.ErrMalformedPOST, "two headers"},
		"field name breaks out": {simpleForm().allow(`["starts-with","$x-amz-meta-a b",""]`).field("x-amz-meta-a b", "1"), access.ErrMalformedPOST, "no header"},
		"no boundary": {simpleForm().with(func(f *postForm) {
			f.change = func(r *http.Request) { r.Header.Set("Content-Type", "multipart/form-data") }
		}), access.ErrMalformedPOST, "cannot be read"},
		"another boundary": {simpleForm().with(func(f *postForm) {
			f.change = func(r *http.Request) { r.Header.Set("Content-Type", "multipart/form-data; boundary=x") }
		}), access.ErrInvalidArgument, "no file"},
		"url-encoded form": {simpleForm().with(func(f *postForm) {
			f.change = func(r *http.Request) { r.Header.Set("Content-Type", "application/x-www-form-urlencoded") }
		}), access.ErrDenied, "STS, not S3"},
		"fields without end":     {simpleForm().field("x-ignore-a", strings.Repeat("a", maxFields)), access.ErrMaxPOSTFieldsSize, "bounded"},
		"cut within the fields":  {simpleForm().with(func(f *postForm) { f.cut = 500 }), access.ErrInvalidArgument, "no file"},
		"unknown key":            {simpleForm().with(func(f *postForm) { f.change = replaceBody(exampleID+"/", "AKIAOTHER/") }), access.ErrUnknownKey, "the lookup's error"},
		"another region":         {simpleForm().with(func(f *postForm) { f.change = replaceBody("us-east-1", "eu-west-1") }), access.ErrSignature, "covered"},
		"signed tomorrow":        {simpleForm().with(func(f *postForm) { f.change = replaceBody("20130524", "20130525") }), access.ErrDenied, "not valid yet"},
		"no signature":           {simpleForm().with(func(f *postForm) { f.change = replaceBody("X-Amz-Signature", "X-Ignore-Signature") }), access.ErrDenied, "anonymous"},
		"version 2":              {simpleForm().with(func(f *postForm) { f.change = replaceBody("X-Amz-Algorithm", "X-Ignore-Algorithm") }), access.ErrInvalidRequest, "says what to use"},
		"policy changed":         {simpleForm().with(func(f *postForm) { f.change = replaceBody("eyJle", "eyJlf") }), access.ErrSignature, "covered"},
		"too many fields":        {manyFields(), access.ErrMaxPOSTFieldsSize, "bounded"},
		"condition on x-ignore":  {simpleForm().allow(`{"x-ignore-a":"1"}`).field("x-ignore-a", "1"), access.Error{}, "may be named"},
		"upper case everywhere":  {simpleForm().allow(`{"ACL":"private"}`).field("Acl", "private"), access.Error{}, "names have no case"},
		"range as text":          {simpleForm().allow(`["content-length-range","0","100"]`), access.Error{}, "some clients write it so"},
		"empty prefix":           {simpleForm().allow(`["starts-with","$Cache-Control",""]`).field("Cache-Control", "no-store"), access.Error{}, "anything"},
		"empty prefix, no field": {simpleForm().allow(`["starts-with","$Cache-Control",""]`), access.ErrDenied, "required"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := exampleVerifier().Verify(c.form.request(t), exampleTime)
			if c.want.Code == "" {
				require.NoError(t, err, c.reason)
				return
			}
			require.Equal(t, c.want.Code, codeOf(t, err), c.reason)
		})
	}
}

func replaceBody(old, to string) func(*http.Request) {
	return func(r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(strings.NewReader(strings.ReplaceAll(string(body), old, to)))
	}
}

func manyFields() *postForm {
	form := simpleForm()
	for range maxFieldsCount {
		form.field("x-ignore-"+strings.Repeat("a", len(form.fields)), "")
	}
	return form
}

func TestPostFormFileIsBounded(t *testing.T) {
	cases := map[string]struct {
		least, most string
		cut         int
		want        access.Error
	}{
		"within":    {"1", "16", 0, access.Error{}},
		"too large": {"1", "15", 0, access.ErrTooLarge},
		"too small": {"17", "99", 0, access.ErrTooSmall},
		"cut":       {"1", "99", 190, access.ErrIncompleteBody},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			form := simpleForm().allow(`["content-length-range",` + c.least + `,` + c.most + `]`)
			form.cut = c.cut
			verified, err := exampleVerifier().Verify(form.request(t), exampleTime)
			require.NoError(t, err, "the fields are fine")
			_, err = io.ReadAll(verified.Body)
			if c.want.Code == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, c.want)
			require.ErrorIs(t, verified.Body.Err(), c.want)
		})
	}
}

func TestHowAPostFormIsAnswered(t *testing.T) {
	for status, want := range map[string]int{"": 204, "200": 200, "201": 201, "204": 204, "500": 204, "x": 204} {
		assert.Equal(t, want, postOf(map[string]string{"success_action_status": status}).Status)
	}
	assert.Equal(t, "https://a", postOf(map[string]string{"redirect": "https://a"}).Redirect)
	assert.Equal(t, "https://b", postOf(map[string]string{"success_action_redirect": "https://b", "redirect": "https://a"}).Redirect)
}

func TestPolicyTimes(t *testing.T) {
	p, err := parsePolicy(base64.StdEncoding.EncodeToString([]byte(`{"expiration":"2015-12-30T12:00:00.000Z","conditions":[]}`)))
	require.NoError(t, err)
	assert.Equal(t, time.Date(2015, 12, 30, 12, 0, 0, 0, time.UTC), p.expiration)
}
