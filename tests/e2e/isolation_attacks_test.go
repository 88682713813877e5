package e2e

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/lib/access"
	"github.com/deckhouse/system-s3/lib/names"
)

const unsignedPayload = "UNSIGNED-PAYLOAD"

// attacker has every right on its own bucket and wants what is in the vaults.
type attacker struct {
	story  *story
	door   door
	tally  *tally
	vaults []vault
	own    string // the S3 name of its bucket
	keys   map[string]aws.CredentialsProvider
}

// shot is one signed S3 request, well-formed in all but its intention.
type shot struct {
	method string
	url    string // with the path as it goes over the wire
	host   string // when it is not that of the URL
	header map[string]string
	body   string
	key    aws.Credentials
	query  bool // signed in the query: a presigned URL
}

func (d door) fire(ctx context.Context, s shot) (int, string, error) {
	request, err := http.NewRequestWithContext(ctx, s.method, s.url, strings.NewReader(s.body))
	if err != nil {
		return 0, "", err
	}
	for name, value := range s.header {
		request.Header.Set(name, value)
	}
	request.Host = cmp.Or(s.host, request.Host)
	signer := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true })
	if s.query {
		presigned, _, err := signer.PresignHTTP(ctx, s.key, withExpiry(request), unsignedPayload, "s3", names.Region, time.Now())
		if err != nil {
			return 0, "", err
		}
		if request.URL, err = url.Parse(presigned); err != nil {
			return 0, "", err
		}
	} else {
		request.Header.Set("X-Amz-Content-Sha256", unsignedPayload)
		if err := signer.SignHTTP(ctx, s.key, request, unsignedPayload, "s3", names.Region, time.Now()); err != nil {
			return 0, "", err
		}
	}
	return d.send(request)
}

func withExpiry(r *http.Request) *http.Request {
	query := r.URL.Query()
	query.Set("X-Amz-Expires", "300")
	r.URL.RawQuery = query.Encode()
	return r
}

func (d door) send(request *http.Request) (int, string, error) {
	response, err := d.http.Do(request)
	if err != nil {
		return 0, "", err
	}
	body, err := io.ReadAll(response.Body)
	return response.StatusCode, string(body), errors.Join(err, response.Body.Close())
}

func (d door) list(ctx context.Context, v vault) ([]string, error) {
	answer, err := d.s3(v.owner).ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: &v.bucket})
	if err != nil {
		return nil, err
	}
	var keys []string
	for _, object := range answer.Contents {
		keys = append(keys, aws.ToString(object.Key))
	}
	return keys, nil
}

// key is a key that lives long enough to be refused for what is tried with it.
func (a attacker) key(t *testing.T, account, suffix string) aws.Credentials {
	t.Helper()
	name := account + suffix
	if a.keys[name] == nil {
		a.keys[name] = aws.NewCredentialsCache(a.door.of(account, mainBucket, suffix), lively)
	}
	key, err := a.keys[name].Retrieve(t.Context())
	require.NoError(t, err)
	return key
}

func lively(o *aws.CredentialsCacheOptions) { o.ExpiryWindow = 5 * time.Second }

func (a attacker) try(t *testing.T, what string, s shot) {
	t.Helper()
	status, body, err := a.door.fire(t.Context(), s)
	a.tally.note(what, status, body, err)
}

// proveWeapons does to the attacker's own bucket what is going to be refused on others: the requests are good.
func (a attacker) proveWeapons(t *testing.T) {
	key := func() aws.Credentials { return a.key(t, "host", "") }
	for style, address := range styles(a.own) {
		for _, query := range []bool{false, true} {
			status, body, err := a.door.fire(t.Context(), shot{method: "GET", url: address + "/isolation/own", key: key(), query: query})
			require.NoError(t, err)
			require.Equal(t, http.StatusOK, status, style)
			require.Equal(t, a.tally.marker, body)
			copied := shot{method: "PUT", url: address + "/isolation/copy", key: key(), query: query, header: map[string]string{"X-Amz-Copy-Source": a.own + "%2Fisolation/own"}}
			status, body, err = a.door.fire(t.Context(), copied)
			require.NoError(t, err)
			require.Equal(t, http.StatusOK, status, body)
		}
		status, body, err := a.send(t, address+"/", a.own, key())
		require.NoError(t, err)
		require.Less(t, status, http.StatusMultipleChoices, body)
	}
}

// styles are the two ways to name a bucket.
func styles(bucket string) map[string]string {
	return map[string]string{"by path": names.S3URL + "/" + bucket, "by host": "https://" + names.VirtualHost(bucket)}
}

// operation is what is done to a bucket or to the object "secret" in it.
type operation struct{ method, rest, body string }

const deleteSecret = `<Delete><Object><Key>secret</Key></Object></Delete>`

func operations() []operation {
	return []operation{
		{"GET", "/secret", ""},
		{"HEAD", "/secret", ""},
		{"GET", "/secret?partNumber=1", ""},
		{"GET", "/secret?acl", ""},
		{"GET", "/secret?attributes", ""},
		{"GET", "/", ""},
		{"GET", "/?list-type=2", ""},
		{"GET", "/?uploads", ""},
		{"GET", "/?versions", ""},
		{"GET", "/?location", ""},
		{"HEAD", "/", ""},
		{"GET", "/?acl", ""},
		{"PUT", "/secret", "x"},
		{"PUT", "/new", "x"},
		{"DELETE", "/secret", ""},
		{"POST", "/?delete", deleteSecret},
		{"POST", "/new?uploads", ""},
		{"PUT", "/secret?acl", ""},
		{"PUT", "/?policy", "{}"},
		{"DELETE", "/", ""},
		{"PUT", "/?lifecycle", "<LifecycleConfiguration/>"},
		{"PUT", "/?website", "<WebsiteConfiguration/>"},
		{"PUT", "/?cors", "<CORSConfiguration/>"},
	}
}

// crossBuckets uses a good key on buckets that it is not for, in both styles, signed in the header and in the query.
func (a attacker) crossBuckets(t *testing.T) {
	targets := []string{"d8-nobody-has-this-abcdefghijkl", "system-s3-internal"}
	for _, v := range a.vaults {
		targets = append(targets, v.bucket)
	}
	for _, target := range targets {
		for style, address := range styles(target) {
			for _, op := range operations() {
				for _, query := range []bool{false, true} {
					a.try(t, fmt.Sprintf("%s %s of %s %s, in the query: %t", op.method, op.rest, target, style, query),
						shot{method: op.method, url: address + op.rest, body: op.body, key: a.key(t, "host", ""), query: query})
				}
			}
		}
	}
	t.Run("a list of buckets names only its own", func(t *testing.T) {
		a.tally.attempts++
		answer, err := a.door.s3(static(a.key(t, "host", ""))).ListBuckets(t.Context(), &s3.ListBucketsInput{})
		require.NoError(t, err)
		require.Len(t, answer.Buckets, 1)
		require.Equal(t, a.own, aws.ToString(answer.Buckets[0].Name))
	})
}

// copyAcross names an object of a vault as the source of a copy into the attacker's own bucket, in every spelling.
func (a attacker) copyAcross(t *testing.T) {
	key := func() aws.Credentials { return a.key(t, "host", "") }
	client := a.door.s3(aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return key(), nil }))
	upload, err := client.CreateMultipartUpload(t.Context(), &s3.CreateMultipartUploadInput{Bucket: &a.own, Key: aws.String("isolation/parts")})
	require.NoError(t, err)
	targets := []string{"/isolation/copied", "/isolation/parts?partNumber=1&uploadId=" + url.QueryEscape(aws.ToString(upload.UploadId))}
	for _, v := range a.vaults {
		for _, source := range []string{
			"/" + v.bucket + "/secret", v.bucket + "/secret", v.bucket + "%2Fsecret", "%2F" + v.bucket + "%2Fsecret", "//" + v.bucket + "/secret",
			a.own + "/../" + v.bucket + "/secret", a.own + "%2F..%2F" + v.bucket + "%2Fsecret", strings.ToUpper(v.bucket) + "/secret",
			v.bucket + "/secret?versionId=null", "arn:aws:s3:::" + v.bucket + "/secret", names.S3URL + "/" + v.bucket + "/secret", v.bucket + "/%73ecret",
		} {
			for _, target := range targets {
				for style, address := range styles(a.own) {
					a.try(t, "copy of "+source+" "+style, shot{method: "PUT", url: address + target, key: key(), header: map[string]string{"X-Amz-Copy-Source": source}})
				}
			}
			a.try(t, "presigned copy of "+source, shot{method: "PUT", url: names.S3URL + "/" + a.own + targets[0], key: key(), query: true, header: map[string]string{"X-Amz-Copy-Source": source}})
		}
		// The other way: its own object into the vault.
		a.try(t, "copy into "+v.bucket, shot{method: "PUT", url: names.S3URL + "/" + v.bucket + "/new", key: key(), header: map[string]string{"X-Amz-Copy-Source": a.own + "/isolation/own"}})
	}
	_, err = client.AbortMultipartUpload(t.Context(), &s3.AbortMultipartUploadInput{Bucket: &a.own, Key: aws.String("isolation/parts"), UploadId: upload.UploadId})
	require.NoError(t, err)
}

// postAcross sends HTML forms whose policy, field or address names a vault.
func (a attacker) postAcross(t *testing.T) {
	for _, v := range a.vaults {
		for style, address := range styles(v.bucket) {
			for _, named := range []string{a.own, v.bucket} {
				a.post(t, "a form to "+v.bucket+" "+style+" with a policy for "+named, address+"/", named, a.key(t, "host", ""))
			}
		}
		a.post(t, "a form to its own bucket with a policy for "+v.bucket, names.S3URL+"/"+a.own, v.bucket, a.key(t, "host", ""))
	}
}

func (a attacker) post(t *testing.T, what, address, named string, key aws.Credentials) {
	t.Helper()
	status, answer, err := a.send(t, address, named, key)
	a.tally.note(what, status, answer, err)
}

// send sends a form that uploads the object "new" under a policy for the named bucket.
func (a attacker) send(t *testing.T, address, named string, key aws.Credentials) (int, string, error) {
	t.Helper()
	now := time.Now().UTC()
	scope := strings.Join([]string{now.Format("20060102"), names.Region, "s3", "aws4_request"}, "/")
	fields := map[string]string{
		"key": "new", "x-amz-algorithm": "AWS4-HMAC-SHA256", "x-amz-credential": key.AccessKeyID + "/" + scope,
		"x-amz-date": now.Format("20060102T150405Z"), "x-amz-security-token": key.SessionToken, "bucket": named,
	}
	conditions := []any{}
	for name, value := range fields {
		conditions = append(conditions, map[string]string{name: value})
	}
	document, err := json.Marshal(map[string]any{"expiration": now.Add(time.Hour).Format("2006-01-02T15:04:05.000Z"), "conditions": conditions})
	require.NoError(t, err)
	fields["policy"] = base64.StdEncoding.EncodeToString(document)
	derived := []byte("AWS4" + key.SecretAccessKey)
	for _, part := range append(strings.Split(scope, "/"), fields["policy"]) {
		mac := hmac.New(sha256.New, derived)
		mac.Write([]byte(part))
		derived = mac.Sum(nil)
	}
	fields["x-amz-signature"] = hex.EncodeToString(derived)

	var body strings.Builder
	form := multipart.NewWriter(&body)
	for name, value := range fields {
		require.NoError(t, form.WriteField(name, value))
	}
	file, err := form.CreateFormFile("file", "new")
	require.NoError(t, err)
	_, err = file.Write([]byte("x"))
	require.NoError(t, errors.Join(err, form.Close()))
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader(body.String()))
	require.NoError(t, err)
	request.Header.Set("Content-Type", form.FormDataContentType())
	return a.door.send(request)
}

// confuse writes addresses that two parsers may read in two ways. One that names an object of its own, however odd,
// finds none there: that is a refusal, too.
func (a attacker) confuse(t *testing.T) {
	for _, v := range a.vaults {
		own, other := names.S3URL+"/"+a.own, "/"+v.bucket+"/secret"
		byHost := "https://" + names.VirtualHost(a.own)
		for _, address := range []string{
			own + "/.." + other, own + "/%2e%2e" + other, own + "/..%2f" + v.bucket + "%2fsecret", own + "/%2e%2e%2f" + v.bucket + "/secret",
			names.S3URL + "/" + other, names.S3URL + "/." + other, names.S3URL + "/%2f" + v.bucket + "/secret", names.S3URL + "/%2e" + other,
			byHost + "/.." + other, byHost + "/%2e%2e" + other, byHost + other, own + ";/.." + other, own + "?/../" + v.bucket + "/secret",
			"https://" + names.VirtualHost(v.bucket) + "/" + a.own + "/../secret", names.S3URL + "/" + strings.ToUpper(v.bucket) + "/secret",
		} {
			a.try(t, "GET "+address, shot{method: "GET", url: address, key: a.key(t, "host", "")})
		}
		for _, host := range []string{
			names.VirtualHost(v.bucket), names.VirtualHost(strings.ToUpper(v.bucket)), names.VirtualHost(v.bucket + "." + a.own),
			names.VirtualHost(a.own + "." + v.bucket), names.VirtualHost(v.bucket) + ".", names.VirtualHost(v.bucket) + ":443",
		} {
			a.try(t, "GET with the host "+host, shot{method: "GET", url: names.S3URL + "/secret", host: host, key: a.key(t, "host", "")})
		}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, names.S3URL+other, http.NoBody)
		require.NoError(t, err)
		for _, header := range []string{"X-Forwarded-Host", "X-Original-URL", "X-Rewrite-URL", "X-Amz-Security-Token", "X-Amz-Access-Key"} {
			request.Header.Set(header, names.VirtualHost(v.bucket)+"/secret")
		}
		status, body, err := a.door.send(request)
		a.tally.note("without a key "+other, status, body, err)
	}
}

// forge changes the key: every character, every length, and the vault's tag in place of its own.
func (a attacker) forge(t *testing.T) {
	key := a.key(t, "host", "") // all keys have the same length
	fire := func(what string, change func(*aws.Credentials), bucket, object string) {
		forged := a.key(t, "host", "")
		change(&forged)
		a.try(t, what, shot{method: "GET", url: names.S3URL + "/" + bucket + "/" + object, key: forged})
	}
	for i := range key.AccessKeyID {
		fire(fmt.Sprintf("character %d flipped", i), func(k *aws.Credentials) { k.AccessKeyID, k.SessionToken = flipped(k.AccessKeyID, i), "" }, a.own, "isolation/own")
		fire(fmt.Sprintf("cut to %d", i), func(k *aws.Credentials) { k.AccessKeyID, k.SessionToken = k.AccessKeyID[:i], "" }, a.own, "isolation/own")
	}
	for i := 0; i < len(key.SessionToken); i += 7 {
		fire(fmt.Sprintf("character %d of the token flipped", i), func(k *aws.Credentials) { k.SessionToken = flipped(k.SessionToken, i) }, a.own, "isolation/own")
	}
	for i := range key.SecretAccessKey {
		fire(fmt.Sprintf("character %d of the secret flipped", i), func(k *aws.Credentials) { k.SecretAccessKey = flipped(k.SecretAccessKey, i) }, a.own, "isolation/own")
	}
	for _, v := range a.vaults {
		fire("the vault's tag", func(k *aws.Credentials) { k.AccessKeyID, k.SessionToken = retagged(t, k.AccessKeyID, v.bucket), "" }, v.bucket, "secret")
		stolen, err := v.owner.Retrieve(t.Context())
		require.NoError(t, err)
		fire("the owner's id with another secret", func(k *aws.Credentials) { k.AccessKeyID, k.SessionToken = stolen.AccessKeyID, stolen.SessionToken }, v.bucket, "secret")
		fire("the owner's session", func(k *aws.Credentials) { k.SessionToken = stolen.SessionToken }, v.bucket, "secret")
	}
	for what, change := range map[string]func(*aws.Credentials){
		"lower case":       func(k *aws.Credentials) { k.AccessKeyID = strings.ToLower(k.AccessKeyID) },
		"longer":           func(k *aws.Credentials) { k.AccessKeyID += "A" },
		"the internal key": func(k *aws.Credentials) { k.AccessKeyID = access.InternalKeyID },
		"an empty secret":  func(k *aws.Credentials) { k.AccessKeyID, k.SecretAccessKey = access.InternalKeyID, "x" },
	} {
		fire(what, func(k *aws.Credentials) { change(k); k.SessionToken = "" }, a.own, "isolation/own")
	}
}

// flipped has another character of the same alphabet in place of the one at i.
func flipped(text string, i int) string {
	other := byte('A')
	if text[i] == other {
		other = 'B'
	}
	return text[:i] + string(other) + text[i+1:]
}

// retagged is the key with the tag of another bucket, which whoever knows the code can write.
func retagged(t *testing.T, id, bucket string) string {
	t.Helper()
	const prefix, tagAt = 5, 7
	encoding := base32.StdEncoding.WithPadding(base32.NoPadding)
	raw, err := encoding.DecodeString(id[prefix:])
	require.NoError(t, err)
	tag := access.BucketTag(bucket)
	copy(raw[tagAt:], tag[:])
	return id[:prefix] + encoding.EncodeToString(raw)
}

// overreach does with a key that reads what only one that writes may, and the other way round.
func (a attacker) overreach(t *testing.T) {
	type holder struct{ account, suffix string }
	readers, writers := []holder{{"reader", ""}, {"host", "/read"}}, []holder{{"writer", ""}, {"host", "/write"}}
	object := "/isolation/own"
	writes := []operation{
		{"PUT", object, "x"},
		{"DELETE", object, ""},
		{"POST", "/?delete", strings.ReplaceAll(deleteSecret, "secret", "isolation/own")},
		{"POST", object + "?uploads", ""},
		{"PUT", object + "?acl", ""},
		{"PUT", object + "?partNumber=1&uploadId=x", "x"},
		{"DELETE", object + "?uploadId=x", ""},
	}
	reads := []operation{
		{"GET", object, ""}, {"HEAD", object, ""}, {"GET", "/", ""}, {"GET", "/?list-type=2", ""}, {"GET", "/?uploads", ""}, {"GET", object + "?acl", ""},
	}
	for _, role := range []struct {
		holders []holder
		ops     []operation
	}{{readers, writes}, {writers, reads}} {
		for _, h := range role.holders {
			who := h.account + h.suffix
			for style, address := range styles(a.own) {
				for _, op := range role.ops {
					for _, query := range []bool{false, true} {
						a.try(t, fmt.Sprintf("%s: %s %s %s", who, op.method, op.rest, style),
							shot{method: op.method, url: address + op.rest, body: op.body, key: a.key(t, h.account, h.suffix), query: query})
					}
				}
			}
			a.try(t, who+": copy", shot{
				method: "PUT", url: names.S3URL + "/" + a.own + "/isolation/copied", key: a.key(t, h.account, h.suffix),
				header: map[string]string{"X-Amz-Copy-Source": a.own + "/isolation/own"},
			})
		}
	}
	for _, h := range readers {
		a.post(t, h.account+h.suffix+": a form", names.S3URL+"/"+a.own, a.own, a.key(t, h.account, h.suffix))
	}
}
