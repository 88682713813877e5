package sts

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/deckhouse/system-s3/lib/access"
	"github.com/deckhouse/system-s3/lib/names"
)

const (
	action  = "AssumeRoleWithWebIdentity"
	version = "2011-06-15"

	contentType = "application/x-www-form-urlencoded"

	// maxBody and maxQuery hold a token of the greatest length, percent-encoded, and everything beside it.
	maxBody  = 64 << 10
	maxQuery = 64 << 10

	minToken  = 4
	maxToken  = 20000
	maxPolicy = 2048

	// rolePath starts the path that names the role for clients that send no RoleArn.
	rolePath = "/role/"
)

var sessionName = regexp.MustCompile(`^[\w+=,.@-]{2,64}$`)

// parameters of a request: each occurs once.
type parameters map[string]string

// request is an AssumeRoleWithWebIdentity whose syntax is right.
type request struct {
	role            access.Role
	session         string // empty when the role came in the path and no session was named
	token           string
	durationSeconds string
}

// readRequest reads the request and checks everything that can be checked without asking anybody. It never returns
// text of the request in an error.
func readRequest(w http.ResponseWriter, r *http.Request) (request, error) {
	if r.Method != http.MethodPost && r.Method != http.MethodGet {
		return request{}, methodNotAllowed(w)
	}
	if r.URL.Path != "/" && r.URL.Path != "" && !strings.HasPrefix(r.URL.Path, rolePath) {
		return request{}, notFound()
	}
	body, err := readBody(w, r)
	if err != nil {
		return request{}, err
	}
	values, err := parseParameters(r.URL.RawQuery, body)
	if err != nil {
		return request{}, err
	}
	return parseRequest(r.URL.Path, values)
}

func methodNotAllowed(w http.ResponseWriter) error {
	w.Header().Set("Allow", "GET, POST")
	answer := errInvalidAction.With("Only GET and POST are served here.")
	answer.Status = http.StatusMethodNotAllowed
	return answer
}

func notFound() error {
	answer := errInvalidAction.With("Nothing is served under this path: use / or " + rolePath + "<namespace>/<bucket>.")
	answer.Status = http.StatusNotFound
	return answer
}

// readBody returns the form of a POST. A body of another kind is refused, not ignored.
func readBody(w http.ResponseWriter, r *http.Request) (string, error) {
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	switch {
	case errors.As(err, new(*http.MaxBytesError)):
		return "", errBodyTooLarge
	case err != nil:
		return "", refuse(errTooSlow, err)
	}
	if len(data) == 0 {
		return "", nil
	}
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if r.Method != http.MethodPost || err != nil || kind != contentType {
		return "", errBadBody.With("Send the parameters as the body of a POST with Content-Type " + contentType + ", or in the query.")
	}
	return string(data), nil
}

// parseParameters merges query and body. Which of two values of a parameter wins would depend on the parser, so none
// does.
func parseParameters(query, body string) (parameters, error) {
	if len(query) > maxQuery {
		return nil, errBadQuery.With("The query string is larger than 64 KiB.")
	}
	inQuery, err := url.ParseQuery(query)
	if err != nil {
		return nil, errBadQuery
	}
	inBody, err := url.ParseQuery(body)
	if err != nil {
		return nil, errBadBody
	}
	merged := parameters{}
	for _, values := range []url.Values{inQuery, inBody} {
		for name, list := range values {
			if _, twice := merged[name]; twice || len(list) != 1 {
				return nil, errCombination.With("A parameter was given more than once.")
			}
			merged[name] = list[0]
		}
	}
	return merged, nil
}

// parseRequest checks the parameters in the order in which a person would want to hear of them.
func parseRequest(path string, values parameters) (request, error) {
	if err := checkAction(values); err != nil {
		return request{}, err
	}
	if err := checkUnsupported(values); err != nil {
		return request{}, err
	}
	role, err := parseRole(path, values)
	if err != nil {
		return request{}, err
	}
	session, err := parseSession(values)
	if err != nil {
		return request{}, err
	}
	token, err := parseToken(values)
	if err != nil {
		return request{}, err
	}
	return request{role: role, session: session, token: token, durationSeconds: values["DurationSeconds"]}, nil
}

func checkAction(values parameters) error {
	switch {
	case values["Action"] == "":
		return errMissingAction
	case values["Action"] != action:
		return errInvalidAction
	case values["Version"] == "":
		return errMissing.With("The request must contain the parameter Version.")
	case values["Version"] != version:
		return errInvalidAction
	}
	return nil
}

// checkUnsupported refuses what cannot be honoured: ignoring a policy would give the caller more than it asked for.
func checkUnsupported(values parameters) error {
	if _, ok := values["ProviderId"]; ok {
		return errCombination.With("ProviderId cannot be used with a ServiceAccount token.")
	}
	for name, value := range values {
		switch {
		case name == "Policy" && len(value) > maxPolicy:
			return errPolicyTooLarge
		case name == "Policy" || strings.HasPrefix(name, "PolicyArns"):
			return errPolicy
		}
	}
	return nil
}

// parseRole takes the role from RoleArn, else from the path: some clients cannot send one.
func parseRole(path string, values parameters) (access.Role, error) {
	arn, inPath := values["RoleArn"], ""
	if rest, ok := strings.CutPrefix(path, rolePath); ok {
		// Clients append a slash to the address that they are given.
		inPath = names.RoleARNPrefix() + strings.TrimSuffix(rest, "/")
	}
	switch {
	case arn == "" && inPath == "":
		return access.Role{}, errMissing.With("The request must contain the parameter RoleArn.")
	case arn == "":
		arn = inPath
	case inPath != "" && inPath != arn:
		return access.Role{}, errCombination.With("RoleArn and the path of the URL name different roles.")
	}
	return access.ParseRoleARN(arn)
}

func parseSession(values parameters) (string, error) {
	session := values["RoleSessionName"]
	if session == "" && values["RoleArn"] == "" {
		return "", nil
	}
	if session == "" {
		return "", errMissing.With("The request must contain the parameter RoleSessionName.")
	}
	if !sessionName.MatchString(session) {
		return "", access.ErrValidation.With("RoleSessionName must be 2 to 64 characters of letters, digits and _+=,.@-")
	}
	return session, nil
}

func parseToken(values parameters) (string, error) {
	// A token file may end with a new line, and clients send the file as it is.
	token := strings.TrimSpace(values["WebIdentityToken"])
	switch {
	case token == "":
		return "", errMissing.With("The request must contain the parameter WebIdentityToken.")
	case len(token) < minToken || len(token) > maxToken:
		return "", access.ErrValidation.With("WebIdentityToken must be 4 to 20000 characters long.")
	}
	return token, nil
}
