package sigv4

import (
	"encoding/json"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/lib/access"
	"github.com/deckhouse/system-s3/lib/names"
)

// botocoreScript presigns as boto3 and the aws CLI do, with their defaults.
const botocoreScript = `
import json, sys
from botocore.session import Session
client = Session().create_client(
    "s3", region_name=sys.argv[1], endpoint_url="https://" + sys.argv[2],
    aws_access_key_id=sys.argv[3], aws_secret_access_key=sys.argv[4], aws_session_token="token")
params = {"Bucket": "d8-test-logs-abcdefghijkl", "Key": "dir/a b+c"}
print(json.dumps({
    "get": client.generate_presigned_url("get_object", Params=params),
    "put": client.generate_presigned_url("put_object", Params=params),
    "post": client.generate_presigned_post(params["Bucket"], params["Key"]),
}))
`

type presignedByBotocore struct {
	Get  string `json:"get"`
	Put  string `json:"put"`
	Post struct {
		URL    string            `json:"url"`
		Fields map[string]string `json:"fields"`
	} `json:"post"`
}

// botocore is the folder with botocore and what it needs, installed by pip into the cache of third-party programs.
func botocore(t *testing.T) string {
	t.Helper()
	folder := filepath.Join(cacheFolder(t), "botocore-"+vectorsVersion+"-installed")
	if _, err := os.Stat(folder); err == nil {
		return folder
	}
	t.Logf("installing botocore %s by pip", vectorsVersion)
	fresh, err := os.MkdirTemp(filepath.Dir(folder), ".botocore-") //nolint:usetesting // renaming needs the same file system
	require.NoError(t, err)
	out, err := exec.CommandContext(t.Context(), "python3", "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
		"--target", fresh, "botocore=="+vectorsVersion).CombinedOutput()
	require.NoError(t, err, "botocore is needed (python3 with pip): %s", out)
	if err := os.Rename(fresh, folder); err != nil { // another run was faster
		require.NoError(t, os.RemoveAll(fresh))
		require.DirExists(t, folder)
	}
	return folder
}

func presignByBotocore(t *testing.T, region string) presignedByBotocore {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "python3", "-c", botocoreScript, region, names.S3Host, exampleID, exampleSecret)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+botocore(t), "AWS_CONFIG_FILE=/dev/null", "AWS_SHARED_CREDENTIALS_FILE=/dev/null")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	var presigned presignedByBotocore
	require.NoError(t, json.Unmarshal(out, &presigned))
	return presigned
}

func arriving(method, url string, body io.Reader) *http.Request {
	return httptest.NewRequest(method, url, body)
}

func formOfBotocore(t *testing.T, p presignedByBotocore) *http.Request {
	t.Helper()
	var body strings.Builder
	form := multipart.NewWriter(&body)
	for name, value := range p.Post.Fields {
		require.NoError(t, form.WriteField(name, value))
	}
	file, err := form.CreateFormFile("file", "file")
	require.NoError(t, err)
	_, err = io.WriteString(file, "data")
	require.NoError(t, err)
	require.NoError(t, form.Close())
	r := arriving(http.MethodPost, p.Post.URL, strings.NewReader(body.String()))
	r.Header.Set("Content-Type", form.FormDataContentType())
	return r
}

// Presigned URLs are why the region is none of AWS's: for those that are old enough, boto3 and the aws CLI presign with
// Signature Version 2 unless they are configured not to.
func TestBotocorePresignsForOurRegion(t *testing.T) {
	verifier := exampleVerifier()
	verifier.Domains = []string{names.S3Host}
	ours := presignByBotocore(t, names.Region)
	for name, r := range map[string]*http.Request{
		"get": arriving(http.MethodGet, ours.Get, http.NoBody), "put": arriving(http.MethodPut, ours.Put, strings.NewReader("data")),
		"post": formOfBotocore(t, ours),
	} {
		verified, err := verifier.Verify(r, time.Now())
		require.NoError(t, err, name)
		require.Equal(t, "d8-test-logs-abcdefghijkl", verified.Bucket, name)
		require.Equal(t, "dir/a b+c", verified.Key, name)
		require.Equal(t, "token", verified.SessionToken, name)
	}
	old := presignByBotocore(t, "us-east-1")
	require.Contains(t, old.Get, "AWSAccessKeyId=", "botocore has changed its mind about us-east-1: the region may be that again")
	_, err := verifier.Verify(arriving(http.MethodGet, old.Get, http.NoBody), time.Now())
	require.Equal(t, access.ErrInvalidRequest.Code, codeOf(t, err))
	require.ErrorContains(t, err, "Please use AWS4-HMAC-SHA256", "the client's user is told what to do")
}

// cacheFolder is where third-party programs are kept.
func cacheFolder(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	require.NoError(t, err)
	folder := filepath.Join(cache, "system-s3")
	require.NoError(t, os.MkdirAll(folder, 0o755))
	return folder
}
