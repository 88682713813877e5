package sts

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/xml"
	"errors"
	"net/http"
	"time"

	"github.com/deckhouse/system-s3/lib/access"
	"github.com/deckhouse/system-s3/lib/names"
)

const (
	requestIDHeader = "X-Amzn-Requestid"

	// timeFormat has whole seconds and a Z: some clients read fixed positions.
	timeFormat = "2006-01-02T15:04:05Z"

	assumedRolePrefix = "arn:aws:sts::000000000000:assumed-role/"
	maxSubject        = 255
)

// response is the success answer. The namespace must be exactly this one and the elements without prefixes: clients
// look for them literally.
type response struct {
	XMLName  xml.Name `xml:"https://sts.amazonaws.com/doc/2011-06-15/ AssumeRoleWithWebIdentityResponse"`
	Result   result   `xml:"AssumeRoleWithWebIdentityResult"`
	Metadata metadata `xml:"ResponseMetadata"`
}

type result struct {
	Credentials      credentials
	Subject          string      `xml:"SubjectFromWebIdentityToken"`
	AssumedRole      assumedRole `xml:"AssumedRoleUser"`
	PackedPolicySize int
	Provider         string
	Audience         string
}

type credentials struct {
	AccessKeyID     string `xml:"AccessKeyId"`
	SecretAccessKey string
	SessionToken    string
	Expiration      string
}

type assumedRole struct {
	ID  string `xml:"AssumedRoleId"`
	ARN string `xml:"Arn"`
}

type metadata struct {
	RequestID string `xml:"RequestId"`
}

type errorResponse struct {
	XMLName   xml.Name    `xml:"https://sts.amazonaws.com/doc/2011-06-15/ ErrorResponse"`
	Error     errorDetail `xml:"Error"`
	RequestID string      `xml:"RequestId"`
}

type errorDetail struct {
	Type    string
	Code    string
	Message string
}

func (e *exchange) response() response {
	role, session := e.request.role, e.sessionName()
	return response{
		Result: result{
			Credentials: credentials{
				AccessKeyID:     e.key.AccessKeyID,
				SecretAccessKey: e.key.SecretAccessKey,
				SessionToken:    e.key.SessionToken,
				Expiration:      e.expiration.UTC().Format(timeFormat),
			},
			Subject: cut(e.subject.String(), maxSubject),
			AssumedRole: assumedRole{
				ID:  roleID(role) + ":" + session,
				ARN: assumedRolePrefix + role.Namespace + "/" + role.Name + "/" + session,
			},
			Provider: e.issuer,
			Audience: names.Audience,
		},
		Metadata: metadata{RequestID: e.requestID},
	}
}

// sessionName of a client that named none is its ServiceAccount.
func (e *exchange) sessionName() string {
	const most = 64
	if e.request.session != "" {
		return e.request.session
	}
	return cut(e.subject.Name, most)
}

// roleID has the form of the unique ids of AWS roles; it is the same for the same SystemBucket.
func roleID(role access.Role) string {
	const letters = 17
	sum := sha256.Sum256([]byte(role.Namespace + "/" + role.Name))
	return "AROA" + base32.StdEncoding.EncodeToString(sum[:])[:letters]
}

func cut(s string, most int) string { return s[:min(len(s), most)] }

func writeResponse(w http.ResponseWriter, answer response) {
	writeXML(w, http.StatusOK, answer.Metadata.RequestID, answer)
}

func writeError(w http.ResponseWriter, requestID string, err access.Error) {
	kind := "Sender"
	if err.Status >= http.StatusInternalServerError {
		kind = "Receiver"
		w.Header().Set("Retry-After", "1")
	}
	writeXML(w, err.Status, requestID, errorResponse{
		Error:     errorDetail{Type: kind, Code: err.Code, Message: err.Message},
		RequestID: requestID,
	})
}

func writeXML(w http.ResponseWriter, status int, requestID string, body any) {
	data, err := xml.Marshal(body)
	if err != nil { // the types above always marshal
		status, data = http.StatusInternalServerError, nil
	}
	w.Header().Set("Content-Type", "text/xml")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set(requestIDHeader, requestID)
	w.WriteHeader(status)
	_, _ = w.Write(data) // a client that left needs no answer
}

// logKey is the audit line: one for each key, with the id by which a gateway's log names it, never a secret.
func (e *exchange) logKey() {
	e.handler.Log.Info("key issued", append(e.fields(),
		"permission", e.permission.String(),
		"s3Bucket", e.bucket,
		"key", access.KeyName(e.key.AccessKeyID),
		"accessKeyID", e.key.AccessKeyID,
		"subject", access.SubjectTag(e.subject.String()).String(),
		"expires", e.key.Expires.Format(time.RFC3339),
	)...)
}

// logRefusal is the line of a request that got no key. What the client did wrong is its business to report; it is
// written once here so that an administrator can find the reason by the request id.
func (e *exchange) logRefusal(answer access.Error, err error) {
	fields := append(e.fields(), "code", answer.Code, "reason", reason(answer, err))
	if answer.Status >= http.StatusInternalServerError || answer.Is(errUnreachable) {
		e.handler.Log.Error(nil, "key not issued", fields...)
		return
	}
	e.handler.Log.Info("key refused", fields...)
}

// reason is the cause that the client is not told, else what it is told.
func reason(answer access.Error, err error) string {
	var r refusal
	switch {
	case errors.As(err, &r):
		return r.cause.Error()
	case errors.As(err, new(access.Error)):
		return answer.Message
	default:
		return err.Error()
	}
}

// fields are what is known of the exchange so far; what is not known is left out.
func (e *exchange) fields() []any {
	fields := []any{"requestID", e.requestID, "source", e.source}
	for _, f := range []struct{ key, value string }{
		{"namespace", e.request.role.Namespace},
		{"bucket", e.request.role.Name},
		{"session", e.request.session},
		{"serviceAccount", e.serviceAccount()},
		{"pod", e.identity.first(extraPodName)},
		{"podUID", e.identity.first(extraPodUID)},
		{"credentialID", e.identity.first(extraCredential)},
	} {
		if f.value != "" {
			fields = append(fields, f.key, f.value)
		}
	}
	return fields
}

func (e *exchange) serviceAccount() string {
	if e.subject.Name == "" {
		return ""
	}
	return e.subject.Namespace + "/" + e.subject.Name
}
