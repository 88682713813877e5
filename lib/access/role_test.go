package access

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const arn = "arn:aws:iam::000000000000:role/"

func TestParseRoleARN(t *testing.T) {
	cases := map[string]struct {
		arn    string
		want   Role
		ok     bool
		reason string
	}{
		"no suffix":           {arn + "d8-demo/logs", Role{"d8-demo", "logs", 0}, true, "what RBAC grants"},
		"read":                {arn + "d8-demo/logs/read", Role{"d8-demo", "logs", Read}, true, "narrowed"},
		"write":               {arn + "d8-demo/logs/write", Role{"d8-demo", "logs", Write}, true, "narrowed"},
		"name with dots":      {arn + "kube-system/a.b-c.1", Role{"kube-system", "a.b-c.1", 0}, true, "object names are subdomains"},
		"a bucket named read": {arn + "d8-demo/read", Role{"d8-demo", "read", 0}, true, "a name is a name"},

		"empty":               {"", Role{}, false, "absent"},
		"prefix only":         {arn, Role{}, false, "nothing named"},
		"no bucket":           {arn + "d8-demo", Role{}, false, "an empty name would mean all names to RBAC"},
		"empty bucket":        {arn + "d8-demo/", Role{}, false, "an empty name would mean all names to RBAC"},
		"empty namespace":     {arn + "/logs", Role{}, false, "an empty namespace would mean all namespaces to RBAC"},
		"empty bucket, read":  {arn + "d8-demo//read", Role{}, false, "an empty name would mean all names to RBAC"},
		"star":                {arn + "d8-demo/*", Role{}, false, "no patterns"},
		"unknown suffix":      {arn + "d8-demo/logs/admin", Role{}, false, "unknown"},
		"both suffixes":       {arn + "d8-demo/logs/read/write", Role{}, false, "one or none"},
		"empty suffix":        {arn + "d8-demo/logs/", Role{}, false, "one or none"},
		"upper suffix":        {arn + "d8-demo/logs/READ", Role{}, false, "no folding"},
		"upper namespace":     {arn + "D8-demo/logs", Role{}, false, "no folding"},
		"space before":        {" " + arn + "d8-demo/logs", Role{}, false, "no trimming"},
		"line break after":    {arn + "d8-demo/logs\n", Role{}, false, "no trimming"},
		"percent":             {arn + "d8-demo%2Flogs", Role{}, false, "no unescaping"},
		"dots as namespace":   {arn + "../logs", Role{}, false, "no paths"},
		"dots as bucket":      {arn + "d8-demo/..", Role{}, false, "no paths"},
		"dot at the end":      {arn + "d8-demo/logs.", Role{}, false, "not a name"},
		"namespace with dot":  {arn + "d8.demo/logs", Role{}, false, "namespaces are labels"},
		"hyphen first":        {arn + "-d8/logs", Role{}, false, "not a name"},
		"another account":     {"arn:aws:iam::123456789012:role/d8-demo/logs", Role{}, false, "there is one account"},
		"another partition":   {"arn:aws-cn:iam::000000000000:role/d8-demo/logs", Role{}, false, "there is one partition"},
		"a user":              {"arn:aws:iam::000000000000:user/d8-demo/logs", Role{}, false, "roles only"},
		"long namespace":      {arn + strings.Repeat("a", 64) + "/logs", Role{}, false, "63 at most"},
		"long bucket":         {arn + "d8-demo/" + strings.Repeat("a", 254), Role{}, false, "253 at most"},
		"not ASCII":           {arn + "d8-demo/lögs", Role{}, false, "not a name"},
		"zero byte":           {arn + "d8-demo/logs\x00", Role{}, false, "not a name"},
		"underscore":          {arn + "d8_demo/logs", Role{}, false, "not a name"},
		"only the bare names": {"d8-demo/logs", Role{}, false, "an ARN"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			role, err := ParseRoleARN(c.arn)
			if !c.ok {
				require.ErrorIs(t, err, ErrValidation, c.reason)
				return
			}
			require.NoError(t, err, c.reason)
			assert.Equal(t, c.want, role)
		})
	}
}

func TestResolve(t *testing.T) {
	cases := map[string]struct {
		asked, granted, want Permission
		reason               string
	}{
		"all, both":        {0, ReadWrite, ReadWrite, "exactly what RBAC grants"},
		"all, read":        {0, Read, Read, "exactly what RBAC grants"},
		"all, write":       {0, Write, Write, "write does not imply read"},
		"all, none":        {0, 0, 0, "no RoleBinding"},
		"read, both":       {Read, ReadWrite, Read, "narrowed"},
		"read, write":      {Read, Write, 0, "write does not imply read"},
		"write, both":      {Write, ReadWrite, Write, "narrowed"},
		"write, read":      {Write, Read, 0, "never widened"},
		"read, none":       {Read, 0, 0, "no RoleBinding"},
		"all, unknown bit": {0, 4, 0, "a bit that is no permission grants nothing"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Role{"ns", "b", c.asked}.Resolve(c.granted)
			assert.Equal(t, c.want, got, c.reason)
			if c.want == 0 {
				require.ErrorIs(t, err, ErrDenied)
			} else {
				require.NoError(t, err)
			}
		})
	}
	assert.Equal(t, []Permission{Read, Write}, Role{}.Asks())
	assert.Equal(t, []Permission{Write}, Role{Permission: Write}.Asks(), "no review that decides nothing")
}

func TestParseSubject(t *testing.T) {
	subject, err := ParseSubject("system:serviceaccount:d8-demo:app.v1")
	require.NoError(t, err)
	assert.Equal(t, Subject{"d8-demo", "app.v1"}, subject)
	assert.Equal(t, "system:serviceaccount:d8-demo:app.v1", subject.String())
	for name, username := range map[string]string{
		"empty": "", "a person": "admin", "a node": "system:node:worker-1", "no name": "system:serviceaccount:d8-demo:",
		"no namespace": "system:serviceaccount::app", "one part": "system:serviceaccount:d8-demo", "three parts": "system:serviceaccount:a:b:c",
		"a group": "system:serviceaccounts:d8-demo", "upper": "system:serviceaccount:D8:app", "an OIDC user": "oidc:system:serviceaccount:a:b",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseSubject(username)
			require.ErrorIs(t, err, ErrRejected)
		})
	}
}

func TestLifetime(t *testing.T) {
	cases := map[string]struct {
		asked  string
		limit  time.Duration
		want   time.Duration
		reason string
	}{
		"not sent":        {"", 30 * time.Minute, 30 * time.Minute, "no SDK sends it by default"},
		"minimum":         {"900", 30 * time.Minute, 15 * time.Minute, "valid"},
		"as the limit":    {"1800", 30 * time.Minute, 30 * time.Minute, "valid"},
		"an hour":         {"3600", 30 * time.Minute, 30 * time.Minute, "clamped, and the answer tells the truth"},
		"maximum":         {"43200", 30 * time.Minute, 30 * time.Minute, "clamped"},
		"short module":    {"900", 20 * time.Second, 20 * time.Second, "a sandbox may live faster than AWS"},
		"a second less":   {"899", 30 * time.Minute, 0, "AWS refuses"},
		"a second more":   {"43201", 30 * time.Minute, 0, "AWS refuses"},
		"zero":            {"0", 30 * time.Minute, 0, "AWS refuses"},
		"negative":        {"-1800", 30 * time.Minute, 0, "not a number of seconds"},
		"signed":          {"+1800", 30 * time.Minute, 0, "not a number of seconds"},
		"fraction":        {"1800.5", 30 * time.Minute, 0, "not whole"},
		"exponent":        {"1e3", 30 * time.Minute, 0, "not a number of seconds"},
		"hexadecimal":     {"0x708", 30 * time.Minute, 0, "not a number of seconds"},
		"underscore":      {"1_800", 30 * time.Minute, 0, "not a number of seconds"},
		"space":           {" 1800", 30 * time.Minute, 0, "not trimmed"},
		"words":           {"half an hour", 30 * time.Minute, 0, "not a number of seconds"},
		"overflows":       {"99999999999999999999", 30 * time.Minute, 0, "does not fit"},
		"wraps to 30 min": {"4294969096", 30 * time.Minute, 0, "2^32 + 1800"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Lifetime(c.asked, c.limit)
			assert.Equal(t, c.want, got, c.reason)
			if c.want == 0 {
				require.ErrorIs(t, err, ErrValidation)
			} else {
				require.NoError(t, err)
			}
		})
	}
}
