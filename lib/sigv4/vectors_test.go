package sigv4

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// AWS's test vectors of Signature Version 4 are published in botocore's source distribution. They are fetched by pip
// into the cache of third-party programs, never committed.
const (
	vectorsVersion = "1.43.11"
	vectorsSum     = "d7d479cc2809ec2728f2898521003adfb79bfe6a4615c59dfd222ec52b0cee6b"
	vectorsFolder  = "tests/unit/auth/aws4_testsuite"

	vectorsSecret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
)

// vectors is the folder with the vectors.
func vectors(t *testing.T) string {
	t.Helper()
	folder := filepath.Join(cacheFolder(t), "botocore-"+vectorsVersion)
	suite := filepath.Join(folder, "aws4_testsuite")
	if _, err := os.Stat(suite); err == nil {
		return suite
	}
	t.Logf("fetching botocore %s by pip", vectorsVersion)
	download := t.TempDir()
	out, err := exec.CommandContext(t.Context(), "python3", "-m", "pip", "download", "--quiet", "--disable-pip-version-check",
		"--no-deps", "--no-binary", ":all:", "--dest", download, "botocore=="+vectorsVersion).CombinedOutput()
	require.NoError(t, err, "the AWS test vectors are needed (python3 with pip): %s", out)
	archive, err := os.ReadFile(filepath.Join(download, "botocore-"+vectorsVersion+".tar.gz"))
	require.NoError(t, err)
	sum := sha256.Sum256(archive)
	require.Equal(t, vectorsSum, hex.EncodeToString(sum[:]), "not the distribution that was published")

	require.NoError(t, os.MkdirAll(filepath.Dir(folder), 0o755))
	fresh, err := os.MkdirTemp(filepath.Dir(folder), ".botocore-") //nolint:usetesting // renaming needs the same file system
	require.NoError(t, err)
	unpack(t, archive, fresh)
	if err := os.Rename(fresh, folder); err != nil { // another run was faster
		require.NoError(t, os.RemoveAll(fresh))
		require.DirExists(t, suite)
	}
	return suite
}

func unpack(t *testing.T, archive []byte, to string) {
	t.Helper()
	zipped, err := gzip.NewReader(bytes.NewReader(archive))
	require.NoError(t, err)
	for files := tar.NewReader(zipped); ; {
		file, err := files.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
		_, name, ok := strings.Cut(file.Name, vectorsFolder+"/")
		if !ok || file.Typeflag != tar.TypeReg {
			continue
		}
		data, err := io.ReadAll(files)
		require.NoError(t, err)
		target := filepath.Join(to, "aws4_testsuite", filepath.FromSlash(path.Clean("/"+name)))
		require.NoError(t, os.MkdirAll(filepath.Dir(target), 0o755))
		require.NoError(t, os.WriteFile(target, data, 0o644))
	}
}

// vectorRequest reads a request of the vectors, which are looser than HTTP: no end of the headers, spaces in the path.
func vectorRequest(t *testing.T, text string) (*http.Request, string) {
	t.Helper()
	head, body, _ := strings.Cut(text, "\n\n")
	lines := strings.Split(strings.TrimRight(head, "\n"), "\n")
	method, uri, _ := strings.Cut(strings.TrimSuffix(lines[0], " HTTP/1.1"), " ")
	r := &http.Request{Method: method, RequestURI: uri, URL: &url.URL{}, Header: http.Header{}, ContentLength: -1}
	last := ""
	for _, line := range lines[1:] {
		if strings.HasPrefix(line, " ") { // a folded value goes on
			values := r.Header[last]
			values[len(values)-1] += " " + strings.TrimSpace(line)
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		require.True(t, ok, "header %q", line)
		last = http.CanonicalHeaderKey(name)
		r.Header.Add(last, value)
	}
	r.Host = r.Header.Get("Host")
	return r, body
}

// normalised is the path as services other than S3 sign it: this is the only rule in which S3 differs.
func normalised(p string) string {
	clean := path.Clean(p)
	if strings.HasSuffix(p, "/") && clean != "/" {
		clean += "/"
	}
	return clean
}

func TestVectors(t *testing.T) {
	suite, count := vectors(t), 0
	err := filepath.WalkDir(suite, func(file string, _ os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(file, ".req") {
			return err
		}
		count++
		name, err := filepath.Rel(suite, filepath.Dir(file))
		t.Run(name, func(t *testing.T) { testVector(t, strings.TrimSuffix(file, ".req")) })
		return err
	})
	require.NoError(t, err)
	require.GreaterOrEqual(t, count, 30, "the suite is not whole")
}

func testVector(t *testing.T, base string) {
	t.Helper()
	read := func(suffix string) string {
		data, err := os.ReadFile(base + suffix)
		require.NoError(t, err)
		return strings.ReplaceAll(string(data), "\r\n", "\n")
	}
	// One signed request of the suite carries a stale signature; the .authz files are the authority.
	r, body := vectorRequest(t, read(".sreq"))
	auth, err := parseAuthorization(strings.TrimSpace(read(".authz")))
	require.NoError(t, err)
	auth.time, err = headerTime(trimmed(r.Header))
	require.NoError(t, err)
	at, query, err := target(r)
	require.NoError(t, err)
	at.raw, at.decoded = normalised(at.raw), normalised(at.decoded)

	hash := hexSum(body)
	covered := canonical{
		method: r.Method, path: at.canonicalPaths()[0], query: canonicalQuery(query), headers: canonicalHeaders(r, auth.signed),
		signedHeaders: strings.Join(auth.signed, ";"), payloadHash: hash,
	}
	digest := covered.sum()
	assert.Equal(t, hexSum(read(".creq")), hex.EncodeToString(digest[:]))
	assert.Equal(t, read(".sts"), string(stringToSign(auth.time.Format(timeFormat), auth.scope, covered)))

	verifier := &Verifier{Lookup: func(id string) (string, error) {
		assert.Equal(t, "AKIDEXAMPLE", id)
		return vectorsSecret, nil
	}}
	in := &incoming{Request: r, path: at, query: query, now: time.Now()}
	_, err = verifier.prove(in, auth, hash)
	require.NoError(t, err, "the signature")

	auth.signature[0] ^= 1
	_, err = verifier.prove(in, auth, hash)
	require.Error(t, err, "a wrong signature")
}

// trimmed is headers as a server would have received them.
func trimmed(header http.Header) http.Header {
	out := http.Header{}
	for name, values := range header {
		for _, value := range values {
			out.Add(name, strings.TrimSpace(value))
		}
	}
	return out
}
