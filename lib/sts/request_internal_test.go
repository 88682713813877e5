package sts

import (
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/lib/access"
)

// FuzzParse holds that no input is understood in two ways and that what is accepted is what was sent.
func FuzzParse(f *testing.F) {
	f.Add("/", "", "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn=arn:aws:iam::000000000000:role/d8-a/b&RoleSessionName=me&WebIdentityToken=abcd")
	f.Add("/role/d8-a/b/read", "Action=AssumeRoleWithWebIdentity&Version=2011-06-15", "WebIdentityToken=a.b.c%0A")
	f.Add("/", "Action=a;b", "%")
	f.Fuzz(func(t *testing.T, path, query, body string) {
		values, err := parseParameters(query, body)
		if err != nil {
			require.ErrorAs(t, err, new(access.Error))
			return
		}
		for name, value := range values {
			inQuery, _ := url.ParseQuery(query)
			inBody, _ := url.ParseQuery(body)
			require.Equal(t, []string{value}, append(inQuery[name], inBody[name]...))
		}
		got, err := parseRequest(path, values)
		if err != nil {
			require.ErrorAs(t, err, new(access.Error))
			return
		}
		require.NotContains(t, values, "Policy")
		require.Contains(t, values["WebIdentityToken"], got.token)
		require.GreaterOrEqual(t, len(got.token), minToken)
		require.NotContains(t, got.role.Namespace+got.role.Name, "/")
		require.False(t, strings.ContainsAny(got.session, "<>&\"' \n"))
	})
}
