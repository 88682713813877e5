package front

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// maxForm bounds a POST form, and a body of signed chunks, in bytes.
const maxForm = 64 << 20

// translation is a request of the suite on its way to the store.
type translation struct {
	front     *Front
	given     *http.Request
	bucket    Bucket
	suiteName string
	key       aws.Credentials
}

// message is what is signed of a request.
type message struct {
	method, path, query, host string
	header                    http.Header
	length                    int64
}

// request is the request to the store.
func (t *translation) request() (*http.Request, error) {
	given := t.message()
	wanted := given
	wanted.header = given.header.Clone()
	if _, rest := splitPath(given.path); t.suiteName != "" {
		wanted.path = "/" + t.bucket.Name + rest
	}
	wanted.host = t.front.Endpoint.Host
	t.renameSource(wanted.header)
	for _, name := range []string{"X-Amz-Expected-Bucket-Owner", "X-Amz-Source-Expected-Bucket-Owner"} {
		if wanted.header.Get(name) == RootID {
			wanted.header.Set(name, account)
		}
	}
	body, length, err := t.sign(given, &wanted)
	if err != nil {
		return nil, err
	}
	out := (&http.Request{
		Method: wanted.method, Host: wanted.host, Header: wanted.header, Body: body, ContentLength: length,
		URL:   &url.URL{Scheme: t.front.Endpoint.Scheme, Host: t.front.Endpoint.Host, Opaque: wanted.path, RawQuery: wanted.query},
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}).WithContext(t.given.Context())
	if length == 0 {
		out.Body = http.NoBody
	}
	if _, told := out.Header["User-Agent"]; !told {
		out.Header["User-Agent"] = nil
	}
	return out, nil
}

func (t *translation) message() message {
	path, query, _ := strings.Cut(t.given.RequestURI, "?")
	return message{
		method: t.given.Method, path: path, query: query, host: t.given.Host, header: t.given.Header, length: t.given.ContentLength,
	}
}

// renameSource gives the source of a copy the name of its bucket.
func (t *translation) renameSource(header http.Header) {
	const name = "X-Amz-Copy-Source"
	source := header.Get(name)
	slash := ""
	if strings.HasPrefix(source, "/") {
		slash, source = "/", source[1:]
	}
	bucket, object, found := strings.Cut(source, "/")
	if known, there := t.front.find(bucket); there && found {
		header.Set(name, slash+known.Name+"/"+object)
	}
}

// sign signs the wanted message as the given one was signed, and returns its body.
func (t *translation) sign(given message, wanted *message) (io.ReadCloser, int64, error) {
	const form = "multipart/form-data"
	switch {
	case strings.HasPrefix(given.header.Get("Authorization"), algorithm):
		return t.signHeader(given, wanted)
	case strings.Contains(given.query, "X-Amz-"):
		t.signQuery(given, wanted)
	case given.method == http.MethodPost && strings.HasPrefix(given.header.Get("Content-Type"), form):
		return t.signForm()
	}
	return t.given.Body, t.given.ContentLength, nil
}

func (t *translation) signHeader(given message, wanted *message) (io.ReadCloser, int64, error) {
	const name = "Authorization"
	authorization := given.header.Get(name)
	s := parseAuthorization(authorization, given.header)
	key := scopeKey(RootSecret, s.scope)
	good := s.value != "" && s.value == given.signature(s, key)
	authorization = strings.Replace(authorization, "="+RootID+"/", "="+t.key.AccessKeyID+"/", 1)
	if !good {
		wanted.header.Set(name, authorization)
		return t.given.Body, t.given.ContentLength, nil
	}
	seed := wanted.signature(s, scopeKey(t.key.SecretAccessKey, s.scope))
	wanted.header.Set(name, strings.Replace(authorization, s.value, seed, 1))
	if !strings.HasPrefix(s.payload, signedChunks) {
		return t.given.Body, t.given.ContentLength, nil
	}
	body, err := io.ReadAll(io.LimitReader(t.given.Body, maxForm))
	if err != nil {
		return nil, 0, fmt.Errorf("read the chunks: %w", err)
	}
	from := chain{date: s.date, scope: s.scope, key: key, last: s.value}
	to := chain{date: s.date, scope: s.scope, key: scopeKey(t.key.SecretAccessKey, s.scope), last: seed}
	return io.NopCloser(bytes.NewReader(rechain(body, from, to))), t.given.ContentLength, nil
}

func (t *translation) signQuery(given message, wanted *message) {
	s := parsePresigned(given.query, given.header)
	good := s.value != "" && s.value == given.signature(s, scopeKey(RootSecret, s.scope))
	wanted.query = strings.Replace(given.query, "="+RootID, "="+t.key.AccessKeyID, 1)
	if good {
		wanted.query = strings.Replace(wanted.query, s.value, wanted.signature(s, scopeKey(t.key.SecretAccessKey, s.scope)), 1)
	}
}

// signForm rewrites the fields of a POST form that name the bucket and the key, or follow from them.
func (t *translation) signForm() (io.ReadCloser, int64, error) {
	body, err := io.ReadAll(io.LimitReader(t.given.Body, maxForm))
	if err != nil {
		return nil, 0, fmt.Errorf("read the form: %w", err)
	}
	policy, given := field(body, "policy"), field(body, "x-amz-signature")
	credential := field(body, "x-amz-credential")
	_, scope, _ := strings.Cut(credential, "/")
	good := given != "" && hexMAC(scopeKey(RootSecret, scope), policy) == given
	names := strings.NewReplacer(`"`+t.suiteName+`"`, `"`+t.bucket.Name+`"`, RootID, t.key.AccessKeyID)
	if document, err := base64.StdEncoding.DecodeString(policy); err == nil && policy != "" {
		changed := base64.StdEncoding.EncodeToString([]byte(names.Replace(string(document))))
		body = bytes.ReplaceAll(body, []byte(policy), []byte(changed))
		policy = changed
	}
	body = bytes.ReplaceAll(body, []byte(RootID+"/"), []byte(t.key.AccessKeyID+"/"))
	if good {
		body = bytes.ReplaceAll(body, []byte(given), []byte(hexMAC(scopeKey(t.key.SecretAccessKey, scope), policy)))
	}
	if bucket := field(body, "bucket"); bucket == t.suiteName {
		body = bytes.Replace(body, []byte("\r\n\r\n"+bucket+"\r\n"), []byte("\r\n\r\n"+t.bucket.Name+"\r\n"), 1)
	}
	return io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
}

// field is the value of a form's field, as it stands there.
func field(body []byte, name string) string {
	lower := bytes.ToLower(body)
	i := bytes.Index(lower, []byte(`name="`+name+`"`))
	if i < 0 {
		return ""
	}
	_, rest, found := bytes.Cut(body[i:], []byte("\r\n\r\n"))
	if !found {
		return ""
	}
	value, _, _ := bytes.Cut(rest, []byte("\r\n"))
	return string(value)
}
