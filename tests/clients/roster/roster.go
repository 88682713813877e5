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
	Program    Kind = "program"
	AWSCLI     Kind = "awscli"
	AWSCLI2    Kind = "awscli2"
	Boto3      Kind = "boto3"
	Rclone     Kind = "rclone"
	JavaScript Kind = "javascript"
	Java       Kind = "java"
	Restic     Kind = "restic"
	Registry   Kind = "registry"
	Velero     Kind = "velero"
	Loki       Kind = "loki"
	Barman     Kind = "barman"
	PgBackRest Kind = "pgbackrest"
)

// Versions that the images are made of: of PyPI, npm, Maven Central, Go modules and, for the second AWS CLI and Barman,
// of Debian 13; pgBackRest of Debian unstable, because the one before cannot be told where STS is.
const (
	AWSCLI2Version    = "2.23.6"
	BarmanVersion     = "3.13.3"
	Boto3Version      = "1.44.8"
	JavaScriptVersion = "3.1175.0"
	JavaVersion       = "2.46.2"
	LokiVersion       = "3.7.8"
	PgBackRestVersion = "2.60.0"
	RcloneVersion     = "1.76.0"
	RegistryVersion   = "3.1.2"
	ResticVersion     = "0.18.1"
	VeleroVersion     = "1.14.3"
)

const (
	none     = "none"
	notAPart = "it has no such operation"
	cliGet   = "the CLI signs URLs for GET only"
	whole    = "it reads and writes whole backups"
)

// All is every client.
func All() []Client { return append(sdks(), components()...) }

// sdks are the clients that programs and people use.
func sdks() []Client {
	return []Client{
		{
			Name: "aws-cli", Title: "aws CLI 1.46.3", Image: AWSCLI, Word: "awscli", Settings: none,
			Cannot: map[string]string{"presign-put": cliGet},
		},
		{
			Name: "aws-cli-2", Title: "aws CLI " + AWSCLI2Version, Image: AWSCLI2, Word: "awscli", Settings: none,
			Cannot: map[string]string{"presign-put": cliGet},
		},
		{Name: "boto3", Title: "boto3 " + Boto3Version, Image: Boto3, Fast: true, Settings: none},
		{Name: "go-v2", Title: "aws-sdk-go-v2 1.48.0", Image: Program, Word: "gov2", Fast: true, Settings: none},
		{Name: "go-v2-path", Title: "aws-sdk-go-v2 1.48.0, path style", Image: Program, Word: "gov2-path", Fast: true, Settings: none},
		{Name: "javascript-v3", Title: "AWS SDK for JavaScript " + JavaScriptVersion, Image: JavaScript, Fast: true, Settings: "none; for a signed PUT, as on AWS, requestChecksumCalculation: WHEN_REQUIRED"},
		{Name: "java-v2", Title: "AWS SDK for Java " + JavaVersion, Image: Java, Settings: "a trust store with ca.crt"},
		{
			Name: "minio-go", Title: "minio-go 7.4.1", Image: Program, Word: "minio", Fast: true,
			Settings: "in code: STSWebIdentity with the endpoints, the role, the token file and the CA of the environment",
		},
		{
			Name: "rclone", Title: "rclone " + RcloneVersion, Image: Rclone, Word: "rclone", Fast: true,
			Settings: "env_auth = true, no_check_bucket = true",
			Cannot:   map[string]string{"presign-put": "rclone link signs URLs for GET only"},
		},
	}
}

// components are parts of a platform. Put, get and multipart are their natural jobs: push and pull, backup and restore.
func components() []Client {
	return []Client{
		{
			Name: "registry", Title: "distribution " + RegistryVersion + " (push, pull)", Image: Registry, Word: "registry",
			Settings: "region, bucket, regionendpoint",
			Cannot: map[string]string{
				"range": notAPart, "copy": "part of every push", "list": notAPart, "delete": notAPart,
				"presign-get": "part of every pull", "presign-put": notAPart,
			},
		},
		{
			Name: "velero", Title: "Velero's AWS plugin " + VeleroVersion, Image: Velero, Settings: "config.region, config.s3Url",
			Cannot: map[string]string{"range": notAPart, "copy": notAPart, "presign-put": "it signs URLs for downloads only"},
		},
		{
			Name: "thanos", Title: "Thanos objstore (Thanos, Mimir)", Image: Program, Word: "thanos",
			Settings: "endpoint, region, bucket, aws_sdk_auth: true, http_config.tls_config.ca_file",
			Cannot:   map[string]string{"copy": notAPart, "presign-get": notAPart, "presign-put": notAPart},
		},
		{
			Name: "loki", Title: "Loki " + LokiVersion + ", its S3 client", Image: Loki, Settings: "bucketnames, http_config.ca_file",
			Cannot: map[string]string{"copy": notAPart, "presign-get": notAPart, "presign-put": notAPart},
		},
		{
			Name: "barman", Title: "barman-cloud " + BarmanVersion + " (backup, restore)", Image: Barman, Settings: none,
			Cannot: map[string]string{
				"range": whole, "copy": notAPart, "presign-get": notAPart, "presign-put": notAPart,
			},
		},
		{
			Name: "pgbackrest", Title: "pgBackRest " + PgBackRestVersion + " (backup, restore)", Image: PgBackRest,
			Settings: "repo1-s3-bucket, -region, -endpoint, -key-type=web-id, -sts-host, repo1-storage-ca-file",
			Cannot: map[string]string{
				"range": whole, "copy": notAPart, "presign-get": notAPart, "presign-put": notAPart,
				"past-expiry": "each of its commands takes a key of its own",
			},
		},
		{
			Name: "restic", Title: "restic " + ResticVersion + " through rclone", Image: Restic, Word: "restic",
			Settings: "repository rclone:s3:$BUCKET_NAME/..., rclone's env_auth = true, no_check_bucket = true",
			Cannot: map[string]string{
				"range": whole, "copy": notAPart, "list": whole, "delete": whole, "presign-get": notAPart, "presign-put": notAPart,
			},
		},
	}
}

// Select returns the clients named, comma-separated; the fast ones when fast; all otherwise.
func Select(named string, fast bool) []Client {
	var selected []Client
	for _, client := range All() {
		if named != "" && strings.Contains(","+named+",", ","+client.Name+",") || named == "" && (client.Fast || !fast) {
			selected = append(selected, client)
		}
	}
	return selected
}
