package sigv4

import (
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/net/http/httpguts"

	"github.com/deckhouse/system-s3/lib/access"
)

const (
	formType = "multipart/form-data"
	fileName = "${filename}"

	// maxFields bounds everything in a form that precedes the file.
	maxFields      = 64 << 10
	maxFieldsCount = 256
)

// IsForm tells a POST form, whose signature is in its body.
func IsForm(r *http.Request) bool {
	mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return r.Method == http.MethodPost && err == nil && mediaType == formType
}

// form is a POST form up to its file.
type form struct {
	fields map[string]string // by lower-case name
	file   *multipart.Part
}

// key is the key of the object to be, with the file's name in its place.
func (f form) key() (string, error) {
	key := f.fields["key"]
	if name := f.file.FileName(); name != "" {
		key = strings.ReplaceAll(key, fileName, name)
	}
	switch {
	case key == "" || !utf8.ValidString(key):
		return "", access.ErrInvalidArgument.With("Bucket POST must contain a field named 'key'.")
	case len(key) > access.MaxKey:
		return "", access.ErrKeyTooLong
	}
	return key, nil
}

// readForm reads the fields of a form up to the file, which stays to be read. Fields behind the file are ignored, as S3
// ignores them.
func readForm(in *incoming) (form, error) {
	if in.bucket == "" || in.key != "" || len(in.query) > 0 {
		// Query parameters are not covered by a policy.
		return form{}, access.ErrMethod
	}
	_, params, err := mime.ParseMediaType(in.Header.Get("Content-Type"))
	if err != nil || params["boundary"] == "" {
		return form{}, access.ErrMalformedPOST
	}
	reader := multipart.NewReader(in.Body, params["boundary"])
	f, room := form{fields: map[string]string{}}, int64(maxFields)
	for range maxFieldsCount {
		part, err := reader.NextRawPart()
		if err != nil {
			return form{}, formError(err)
		}
		name := strings.ToLower(part.FormName())
		if name == "file" {
			f.file = part
			return f, nil
		}
		size, err := f.add(name, part, room)
		if err != nil {
			return form{}, err
		}
		room -= size
	}
	return form{}, access.ErrMaxPOSTFieldsSize
}

// add reads a field if there is room for it and returns the room it takes.
func (f form) add(name string, value io.Reader, room int64) (size int64, err error) {
	data, err := io.ReadAll(io.LimitReader(value, room+1))
	if err != nil {
		return 0, formError(err)
	}
	if size = int64(len(data) + len(name)); size > room {
		return 0, access.ErrMaxPOSTFieldsSize
	}
	if _, twice := f.fields[name]; twice || name == "" || !httpguts.ValidHeaderFieldValue(string(data)) {
		return 0, access.ErrMalformedPOST
	}
	f.fields[name] = string(data)
	return size, nil
}

func formError(err error) error {
	if errors.Is(err, io.EOF) {
		return access.ErrInvalidArgument.With("POST requires exactly one file upload per request.")
	}
	return access.ErrMalformedPOST
}

// verifyPost checks a POST form: the signature of its policy, then the policy's conditions. What goes on is a PUT with
// nothing from the request's own headers.
func (v *Verifier) verifyPost(in *incoming) (*Verified, error) {
	form, err := readForm(in)
	if err != nil {
		return nil, err
	}
	auth, err := v.provePolicy(form, in.now)
	if err != nil {
		return nil, err
	}
	policy, err := parsePolicy(form.fields["policy"])
	if err != nil {
		return nil, err
	}
	key, err := form.key()
	if err != nil {
		return nil, err
	}
	if err := policy.check(form.fields, in.bucket, key, in.now); err != nil {
		return nil, err
	}
	header, err := formHeader(form.fields)
	if err != nil {
		return nil, err
	}
	return &Verified{
		Identity: Identity{AccessKeyID: auth.keyID, SessionToken: form.fields["x-amz-security-token"], Form: FormPost, Payload: PayloadUnsigned},
		Method:   http.MethodPut, Bucket: in.bucket, Key: key, Query: url.Values{}, Header: header,
		Body: &Body{length: -1, source: in.Body, reader: &ranged{source: form.file, least: policy.least, most: policy.most}},
		Post: postOf(form.fields), payloadHash: unsignedPayload,
	}, nil
}

// provePolicy checks the signature of a form's policy.
func (v *Verifier) provePolicy(f form, now time.Time) (authorization, error) {
	if f.fields["policy"] == "" || f.fields["x-amz-signature"] == "" {
		return authorization{}, access.ErrDenied
	}
	if f.fields["x-amz-algorithm"] != algorithm {
		return authorization{}, errMechanism
	}
	auth, err := newAuthorization(f.fields["x-amz-credential"], "", f.fields["x-amz-signature"])
	if err != nil {
		return authorization{}, access.ErrAuthQuery.With(err.Error())
	}
	auth.time, err = time.Parse(timeFormat, f.fields["x-amz-date"])
	if err != nil {
		return authorization{}, access.ErrAuthQuery.With(`X-Amz-Date must be in the ISO8601 Long Format "yyyyMMdd'T'HHmmss'Z'"`)
	}
	if err := auth.checkScope(access.ErrAuthQuery); err != nil {
		return authorization{}, err
	}
	if auth.time.Sub(now) > skew {
		return authorization{}, access.ErrDenied.With("Request is not valid yet")
	}
	secret, err := v.Lookup(auth.keyID)
	if err != nil {
		return authorization{}, err
	}
	if !auth.matches(auth.scope.key(secret), []byte(f.fields["policy"])) {
		return authorization{}, access.ErrSignature
	}
	return auth, nil
}

// formHeader is the headers that the fields of a form stand for.
func formHeader(fields map[string]string) (http.Header, error) {
	header := http.Header{}
	for name, value := range fields {
		switch {
		case isFormAuth(name):
		case strings.HasPrefix(name, "x-amz-copy-source"):
			return nil, access.ErrInvalidArgument.With("A form uploads a file and copies nothing.")
		case name == "acl":
			header.Set("X-Amz-Acl", value)
		case name == "tagging":
			header.Set("X-Amz-Tagging", value)
		case strings.HasPrefix(name, "x-amz-") || isObjectHeader(name):
			if !httpguts.ValidHeaderFieldName(name) {
				return nil, access.ErrMalformedPOST
			}
			header.Set(name, value)
		}
	}
	return header, nil
}

// isFormAuth tells the fields that are no headers of the object: the signature and the framing of a body.
func isFormAuth(name string) bool {
	switch name {
	case "x-amz-algorithm", "x-amz-credential", "x-amz-date", "x-amz-signature", "x-amz-security-token",
		"x-amz-content-sha256", "x-amz-decoded-content-length", "x-amz-trailer":
		return true
	}
	return false
}

func isObjectHeader(name string) bool {
	switch name {
	case "cache-control", "content-type", "content-disposition", "content-encoding", "content-language", "content-md5", "expires":
		return true
	}
	return false
}

func postOf(fields map[string]string) *Post {
	post := &Post{Redirect: fields["success_action_redirect"], Status: http.StatusNoContent}
	if post.Redirect == "" {
		post.Redirect = fields["redirect"]
	}
	switch fields["success_action_status"] {
	case "200":
		post.Status = http.StatusOK
	case "201":
		post.Status = http.StatusCreated
	}
	return post
}

// ranged holds the file of a form to the policy's content-length-range.
type ranged struct {
	source      io.Reader
	least, most int64
	read        int64
}

// Read fails in place of the last bytes if there are too few or too many.
func (r *ranged) Read(p []byte) (int, error) {
	n, err := r.source.Read(p)
	r.read += int64(n)
	switch {
	case r.read > r.most:
		return 0, access.ErrTooLarge
	case errors.Is(err, io.EOF) && r.read < r.least:
		return 0, access.ErrTooSmall
	case err != nil && !errors.Is(err, io.EOF):
		return 0, short(err)
	}
	return n, err
}
