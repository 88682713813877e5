// Package roster is the clients of the matrix: what each is, what it needs beside the connection ConfigMap, and what it
// cannot do.
package roster

import "strings"

// Operations are the columns of the matrix, in the order in which every client tries them.
var Operations = []string{
	"put", "get", "range", "multipart", "copy", "list", "delete", "presign-get", "presign-put", "past-expiry",
}

// Client is one row.
type Client struct {
	// Name of the row, of its Pod and of its ServiceAccount.
	Name string
	// Title is the client with its version, as people call it.
	Title string
	// Image is one of the kinds of images.
	Image Kind
	// Word is what the Go program is told to be; other images have one client only.
	Word string
	// Fast clients run in `make test`.
	Fast bool
	// Settings are what it needs beside the connection ConfigMap.
	Settings string
	// Cannot names operations that the client itself does not have, and says why.
	Cannot map[string]string
}

// Kind of an image.
type Kind string

// The kinds of images.
const (
	Program Kind = "program"
	AWSCLI  Kind = "awscli"
	Boto3   Kind = "boto3"
	Rclone  Kind = "rclone"
)

const notAPart = "it has no such operation"

// All is every client; those that land first come first.
func All() []Client {
	return []Client{
		{
			Name: "aws-cli", Title: "aws CLI 1.46.3", Image: AWSCLI, Word: "awscli", Settings: "none",
			Cannot: map[string]string{"presign-put": "the CLI signs URLs for GET only"},
		},
		{Name: "boto3", Title: "boto3 " + Boto3Version, Image: Boto3, Fast: true, Settings: "none"},
		{Name: "go-v2", Title: "aws-sdk-go-v2 1.48.0", Image: Program, Word: "gov2", Fast: true, Settings: "none"},
		{Name: "go-v2-path", Title: "aws-sdk-go-v2 1.48.0, path style", Image: Program, Word: "gov2-path", Fast: true, Settings: "none"},
		{
			Name: "minio-go", Title: "minio-go 7.4.1", Image: Program, Word: "minio", Fast: true,
			Settings: "in code: STSWebIdentity with the endpoints, the role, the token file and the CA of the environment",
		},
		{
			Name: "rclone", Title: "rclone 1.76.0", Image: Rclone, Word: "rclone", Fast: true,
			Settings: "env_auth = true, no_check_bucket = true, RCLONE_CA_CERT=$(AWS_CA_BUNDLE)",
			Cannot:   map[string]string{"presign-put": "rclone link signs URLs for GET only"},
		},
		{
			Name: "thanos", Title: "Thanos objstore (Thanos, Mimir, Loki)", Image: Program, Word: "thanos",
			Settings: "endpoint, region, bucket, aws_sdk_auth: true, http_config.tls_config.ca_file",
			Cannot: map[string]string{
				"copy": notAPart, "presign-get": notAPart, "presign-put": notAPart,
			},
		},
	}
}

// Boto3Version is the version on PyPI.
const Boto3Version = "1.44.8"

// Select returns the clients named, comma-separated; the fast ones when fast; all otherwise.
func Select(named string, fast bool) []Client {
	var selected []Client
	for _, client := range All() {
		if named != "" && !strings.Contains(","+named+",", ","+client.Name+",") || named == "" && fast && !client.Fast {
			continue
		}
		selected = append(selected, client)
	}
	return selected
}
