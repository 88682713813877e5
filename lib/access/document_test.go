package access

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCheckDelete(t *testing.T) {
	document := func(objects string) string {
		return `<?xml version="1.0" encoding="UTF-8"?><Delete xmlns="http://s3.amazonaws.com/doc/2006-03-01/">` + objects + `</Delete>`
	}
	one := "<Object><Key>a</Key></Object>"
	cases := map[string]struct {
		document string
		want     *Error
		reason   string
	}{
		"two keys":             {document(one + "<Object><Key>b/ c&amp;</Key></Object>"), nil, "what SDKs send"},
		"quiet":                {document("<Quiet>true</Quiet>" + one), nil, "Garage obeys"},
		"no namespace":         {"<Delete>" + one + "</Delete>", nil, "older clients"},
		"indented":             {"<Delete>\n  <Object>\n    <Key>a</Key>\n  </Object>\n</Delete>\n", nil, "spaces between elements say nothing"},
		"nothing":              {document(""), nil, "nothing is deleted"},
		"the null version":     {document("<Object><Key>a</Key><VersionId>null</VersionId></Object>"), nil, "the one that there is"},
		"an empty version":     {document("<Object><Key>a</Key><VersionId></VersionId></Object>"), nil, "as if absent"},
		"a version":            {document(one + "<Object><Key>b</Key><VersionId>x</VersionId></Object>"), &ErrNoSuchVersion, "Garage would delete the current object"},
		"a version, first":     {document("<Object><VersionId>x</VersionId><Key>b</Key></Object>"), &ErrNoSuchVersion, "the order says nothing"},
		"a prefixed version":   {`<s:Delete xmlns:s="x"><s:Object><s:Key>a</s:Key><s:VersionId>x</s:VersionId></s:Object></s:Delete>`, &ErrNoSuchVersion, "whatever the prefix"},
		"an ETag":              {document("<Object><Key>a</Key><ETag>e</ETag></Object>"), &ErrNotImplemented, "Garage would delete whatever the ETag"},
		"a size":               {document("<Object><Key>a</Key><Size>1</Size></Object>"), &ErrNotImplemented, "Garage would delete whatever the size"},
		"a time":               {document("<Object><Key>a</Key><LastModifiedTime>t</LastModifiedTime></Object>"), &ErrNotImplemented, "Garage would delete whatever the time"},
		"unknown in an object": {document("<Object><Key>a</Key><Only>if</Only></Object>"), &ErrMalformedXML, "who knows what it means"},
		"unknown beside":       {document(one + "<Bypass>1</Bypass>"), &ErrMalformedXML, "who knows what it means"},
		"no key":               {document("<Object></Object>"), &ErrMalformedXML, "which one?"},
		"an empty key":         {document("<Object><Key></Key></Object>"), &ErrMalformedXML, "which one?"},
		"two keys in one":      {document("<Object><Key>a</Key><Key>b</Key></Object>"), &ErrMalformedXML, "two parsers, two values"},
		"an overlong key":      {document("<Object><Key>" + strings.Repeat("a", MaxKey+1) + "</Key></Object>"), &ErrKeyTooLong, "Garage would fail again and again"},
		"1000 keys":            {document(strings.Repeat(one, 1000)), nil, "as many as S3 takes"},
		"1001 keys":            {document(strings.Repeat(one, 1001)), &ErrMalformedXML, "more than S3 takes"},
		"another document":     {"<Tagging></Tagging>", &ErrMalformedXML, "not a Delete"},
		"two documents":        {document(one) + document(one), &ErrMalformedXML, "two parsers, two lists"},
		"cut off":              {"<Delete>" + one, &ErrMalformedXML, "not whole"},
		"empty":                {"", &ErrMalformedXML, "nothing"},
		"not XML":              {"{}", &ErrMalformedXML, "JSON"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			err := CheckDelete(c.document)
			if c.want == nil {
				require.NoError(t, err, c.reason)
				return
			}
			require.Equal(t, c.want.Code, codeOf(t, err), c.reason)
		})
	}
}

func FuzzCheckDelete(f *testing.F) {
	f.Add("<Delete><Object><Key>a</Key></Object><Quiet>true</Quiet></Delete>")
	f.Add("<Delete><Object><Key>a</Key><VersionId>x</VersionId></Object></Delete>")
	f.Fuzz(func(t *testing.T, document string) {
		if err := CheckDelete(document); err != nil {
			if e, ok := err.(Error); !ok || e.Status < statusBadRequest { //nolint:errorlint // promised as it is
				t.Fatalf("refused by %v", err)
			}
			return
		}
		if strings.Contains(document, "<ETag>") && !strings.Contains(document, "<!") {
			t.Fatalf("a condition passes: %q", document)
		}
	})
}
