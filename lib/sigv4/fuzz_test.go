package sigv4

import (
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/deckhouse/system-s3/lib/access"
)

// mustBeTold fails on an error that says nothing to a client.
func mustBeTold(t *testing.T, err error) {
	t.Helper()
	if e := (access.Error{}); !errors.As(err, &e) || e.Code == "" || e.Status < 400 {
		t.Fatalf("%v is no answer", err)
	}
}

func FuzzAuthorization(f *testing.F) {
	f.Add("AWS4-HMAC-SHA256 Credential="+exampleScope+",SignedHeaders=host;x-amz-date,Signature="+emptySum, exampleDate, "/a?b=c")
	f.Add("AWS4-HMAC-SHA256 Credential=a/b/c/d/aws4_request, SignedHeaders=host, Signature="+emptySum, "", "http://h/a")
	f.Add("AWS4-HMAC-SHA256 =,=,=", "20130524", "*")
	f.Fuzz(func(t *testing.T, authorization, date, uri string) {
		r := &http.Request{Method: "GET", Host: "h", RequestURI: uri, Header: http.Header{
			"Authorization": {authorization}, "X-Amz-Date": {date}, "X-Amz-Content-Sha256": {emptySum},
		}}
		if uri == "" {
			return
		}
		// No signature of the fuzzer's can be right.
		if _, err := exampleVerifier().Verify(r, exampleTime); err != nil {
			mustBeTold(t, err)
		} else {
			t.Fatalf("%q verifies", authorization)
		}
		auth, err := parseAuthorization(authorization)
		if err == nil && (len(auth.signature) != signatureLength || auth.keyID == "" || strings.Contains(auth.keyID, "/")) {
			t.Fatalf("%q is %+v", authorization, auth)
		}
	})
}

func FuzzPresigned(f *testing.F) {
	f.Add("X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=" + exampleScope + "&X-Amz-Date=" + exampleDate + "&X-Amz-Expires=1&X-Amz-SignedHeaders=host&X-Amz-Signature=" + emptySum)
	f.Add("x-amz-meta-a=%0d%0a&&=&a&%")
	f.Fuzz(func(t *testing.T, raw string) {
		r := &http.Request{Method: "GET", Host: "h", RequestURI: "/bucket/key?" + raw, Header: http.Header{}}
		if _, err := exampleVerifier().Verify(r, exampleTime); err != nil {
			mustBeTold(t, err)
		} else {
			t.Fatalf("%q verifies", raw)
		}
		query, err := parseQuery(raw)
		if err != nil {
			return
		}
		// What is written anew reads the same.
		again, err := parseQuery(canonicalQuery(query))
		if err != nil || canonicalQuery(again) != canonicalQuery(query) {
			t.Fatalf("%q became %q", raw, canonicalQuery(query))
		}
		header := http.Header{}
		if _, err := hoist(query, header); err != nil {
			mustBeTold(t, err)
		}
		for name, values := range header {
			if strings.ContainsAny(name+values[0], "\r\n\x00") {
				t.Fatalf("%q breaks out of a header", raw)
			}
		}
	})
}

func FuzzChunks(f *testing.F) {
	f.Add("3\r\nabc\r\n0\r\n\r\n", int64(3), "")
	f.Add("3\r\nabc\r\n0\r\nx-amz-checksum-crc32:AAAAAA==\r\n\r\n", int64(3), "x-amz-checksum-crc32")
	f.Add("1;chunk-signature="+zeros+"\r\na\r\n0;chunk-signature="+zeros+"\r\n\r\n", int64(1), "")
	f.Add("fffffffffffffff\r\n", int64(1)<<62, "")
	f.Fuzz(func(t *testing.T, text string, length int64, trailer string) {
		if _, known := checksumSize(trailer); length < 0 || trailer != "" && !known {
			return
		}
		plain := newChunkReader(iotest.HalfReader(strings.NewReader(text)), length, trailer)
		data, err := io.ReadAll(plain)
		if err == nil {
			if int64(len(data)) != length || !strings.Contains(text, string(data[:min(len(data), 1)])) || (plain.trailerValue == "") != (trailer == "") {
				t.Fatalf("%q is %q", text, data)
			}
			testFramer(t, data, trailer, plain.trailerValue)
		} else {
			mustBeTold(t, err)
			if length > 0 && int64(len(data)) >= length {
				t.Fatalf("all of a spoiled body came out of %q", text)
			}
		}
		signed := newChunkReader(strings.NewReader(text), length, trailer)
		signed.chain = &chain{key: []byte("key")}
		if data, err := io.ReadAll(signed); err == nil || len(data) > 0 {
			t.Fatalf("%q verifies", text)
		}
	})
}

// testFramer frames a decoded body and decodes it again.
func testFramer(t *testing.T, data []byte, trailer, value string) {
	t.Helper()
	if trailer == "" {
		return
	}
	chunks := &chunkReader{trailerValue: value, err: io.EOF}
	body := &Body{length: int64(len(data)), reader: strings.NewReader(string(data)), chunks: chunks, trailer: trailer}
	framer := newFramer(body)
	text, err := io.ReadAll(framer)
	if err != nil || int64(len(text)) != framer.total() {
		t.Fatalf("framed as %q of %d bytes: %v", text, framer.total(), err)
	}
	again, err := io.ReadAll(newChunkReader(strings.NewReader(string(text)), body.length, trailer))
	if err != nil || string(again) != string(data) {
		t.Fatalf("framed as %q: %v", text, err)
	}
}

func FuzzPolicy(f *testing.F) {
	f.Add(`{"expiration":"2013-05-24T01:00:00Z","conditions":[{"bucket":"b"},["starts-with","$key","u/"],["content-length-range",1,2]]}`, "key", "u/x")
	f.Add(`{"expiration":"2013-05-24T01:00:00Z","conditions":[["eq","$acl",""]]}`, "acl", "")
	f.Add(`{"conditions":[[[[]]]]}`, "", "")
	f.Fuzz(func(t *testing.T, document, field, value string) {
		p, err := parsePolicy(base64.StdEncoding.EncodeToString([]byte(document)))
		if err != nil {
			mustBeTold(t, err)
			return
		}
		fields := map[string]string{"key": "k", strings.ToLower(field): value}
		if err := p.check(fields, "b", "k", exampleTime); err != nil {
			mustBeTold(t, err)
			return
		}
		if !exampleTime.Before(p.expiration) || !strings.Contains(strings.ToLower(document), "key") {
			t.Fatalf("%q allows %q=%q", document, field, value)
		}
	})
}

func FuzzPostForm(f *testing.F) {
	form := simpleForm()
	r := form.request(&testing.T{})
	body, err := io.ReadAll(r.Body)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(r.Header.Get("Content-Type"), string(body))
	f.Add("multipart/form-data; boundary=x", "--x\r\nContent-Disposition: form-data; name=\"file\"\r\n\r\n--x--")
	f.Fuzz(func(t *testing.T, contentType, body string) {
		r := httptest.NewRequest(http.MethodPost, "http://h/", strings.NewReader(body))
		r.RequestURI = "/examplebucket"
		r.Header["Content-Type"] = []string{contentType}
		verified, err := exampleVerifier().Verify(r, exampleTime)
		if err != nil {
			mustBeTold(t, err)
			return
		}
		if !strings.HasPrefix(verified.Key, "user/") || verified.Bucket != "examplebucket" || len(verified.Query) > 0 {
			t.Fatalf("the policy does not allow %+v", verified)
		}
		if _, err := io.Copy(io.Discard, verified.Body); err != nil {
			mustBeTold(t, err)
		}
	})
}

func FuzzHead(f *testing.F) {
	f.Add("X-Amz-Decoded-Content-Length", "5", "x-amz-trailer", "x-amz-checksum-crc32")
	f.Add("Content-Encoding", "aws-chunked,gzip", "X-Amz-Security-Token", "t")
	f.Fuzz(func(t *testing.T, name, value, other, content string) {
		r := &http.Request{
			Method: "PUT", Host: "s3.amazonaws.com", RequestURI: "/bucket/key", Body: http.NoBody,
			Header: http.Header{http.CanonicalHeaderKey(name): {value}, http.CanonicalHeaderKey(other): {content}},
		}
		for _, hash := range []string{unsignedPayload, signedChunks, signedChunksTrailer, unsignedChunksTrailer, strconv.Quote(name)} {
			in := &incoming{Request: r, bucket: "bucket", key: "key", now: time.Time{}}
			verified, err := in.verified(FormHeader, proof{}, hash)
			if err != nil {
				mustBeTold(t, err)
				continue
			}
			for _, gone := range []string{headerAuthorization, headerDate, headerSHA256, headerToken, headerDecodedLength, headerTrailer} {
				if verified.Header.Get(gone) != "" {
					t.Fatalf("%s goes on", gone)
				}
			}
		}
	})
}
