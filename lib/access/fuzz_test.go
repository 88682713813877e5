package access

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

func FuzzVerify(f *testing.F) {
	ring := Ring{Keys: []RingKey{ringKey(1, 'a')}}
	key, err := Issue(ring.Keys[0], grant(), [8]byte{1})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(key.AccessKeyID, key.SessionToken)
	f.Add(strings.ToLower(key.AccessKeyID), key.SessionToken[1:])
	f.Add(keyPrefix, ".")
	f.Fuzz(func(t *testing.T, id, token string) {
		_, secret, err := ring.Verify(id, noon)
		if (err == nil) != (id == key.AccessKeyID) || (secret != "") != (err == nil) {
			t.Fatalf("only what was issued verifies: %q, %v", id, err)
		}
		if _, err := ring.VerifyToken(token, id); (err == nil) != (id == key.AccessKeyID && token == key.SessionToken) {
			t.Fatalf("only what was issued verifies: %q, %v", token, err)
		}
	})
}

func FuzzParseRing(f *testing.F) {
	data, err := Ring{Keys: []RingKey{ringKey(1, 'a'), ringKey(2, 'b')}}.Marshal()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(`{"keys":[{"id":0}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		ring, err := ParseRing(data)
		if err != nil {
			return
		}
		again, err := ring.Marshal()
		if err != nil {
			return // a year that JSON cannot carry
		}
		parsed, err := ParseRing(again)
		if err != nil || len(parsed.Keys) != len(ring.Keys) {
			t.Fatalf("what was read cannot be read again: %v", err)
		}
		if _, err := ring.Signing(noon); err != nil {
			t.Fatal(err)
		}
		if rotated := ring.Rotate(noon, bytes.Repeat([]byte{1}, 32)); len(rotated.Keys) == 0 {
			t.Fatal("a rotation emptied the ring")
		}
	})
}

func FuzzParseRoleARN(f *testing.F) {
	f.Add("arn:aws:iam::000000000000:role/d8-demo/logs/read", "900")
	f.Add("arn:aws:iam::000000000000:role//", "-1")
	f.Fuzz(func(t *testing.T, text, duration string) {
		if role, err := ParseRoleARN(text); err == nil {
			want := arn + role.Namespace + "/" + role.Name
			if role.Permission != 0 {
				want += "/" + role.Permission.String()
			}
			if text != want || role.Namespace == "" || role.Name == "" || strings.ContainsAny(role.Namespace+role.Name, "/*:") {
				t.Fatalf("%q was taken for %+v", text, role)
			}
		}
		if subject, err := ParseSubject(text); err == nil && subject.String() != text {
			t.Fatalf("%q was taken for %+v", text, subject)
		}
		if life, err := Lifetime(duration, time.Hour); err == nil && (life <= 0 || life > time.Hour) {
			t.Fatalf("%q lives %s", duration, life)
		}
	})
}

func FuzzClassify(f *testing.F) {
	f.Add("PUT", "a/b", "uploadId", "u", "X-Amz-Copy-Source", foreign+"/x")
	f.Add("GET", "", "list-type", "2", "If-Match", "e")
	f.Add("DELETE", "k", "versionId", "null", "x-amz-acl", "private")
	f.Fuzz(func(t *testing.T, method, key, param, value, header, content string) {
		r := Request{Method: method, Bucket: mine, Key: key, Query: map[string][]string{param: {value}, "x-id": {"x"}}, Header: map[string][]string{header: {content}}}
		op, err := Classify(r)
		if err != nil {
			if e, ok := err.(Error); !ok || e.Code == "" || e.Status < 400 || op.Writes() { //nolint:errorlint // promised as it is
				t.Fatalf("refused by %v", err)
			}
			return
		}
		if op.Kind == Refuse || op.Name == "" || len(op.Query) > 1 {
			t.Fatalf("passes as %+v", op)
		}
		reads := method == "GET" || method == "HEAD"
		if reads == op.Need.Covers(Write) {
			t.Fatalf("%s is %+v", method, op)
		}
		claims := Claims{BucketTag: BucketTag(mine), Permission: ReadWrite}
		if _, err := Decide(claims, r); err == nil && op.CopySource != nil && op.CopySource.Bucket != mine {
			t.Fatalf("copies from %+v", op.CopySource)
		}
	})
}

func FuzzLocate(f *testing.F) {
	f.Add("logs.s3.x:443", "/a//b")
	f.Add("s3.x", "//a")
	f.Fuzz(func(t *testing.T, host, path string) {
		bucket, key, err := Locate(host, path, []string{"s3.x"})
		if err != nil {
			return
		}
		if bucket == "" && path != "/" || bucket != "" && !isBucket(bucket) || !strings.HasSuffix(path, key) {
			t.Fatalf("%q %q is %q %q", host, path, bucket, key)
		}
		if source, err := parseCopySource(path); err == nil && (!isBucket(source.Bucket) || source.Key == "") {
			t.Fatalf("%q is %+v", path, source)
		}
	})
}
