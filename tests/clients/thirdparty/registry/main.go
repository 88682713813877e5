// Command registry is the distribution registry with its S3 storage only: with all of its storages it takes minutes to
// build.
package main

import (
	"os"

	"github.com/distribution/distribution/v3/registry"
	_ "github.com/distribution/distribution/v3/registry/storage/driver/s3-aws"
)

func main() {
	if registry.RootCmd.Execute() != nil {
		os.Exit(1)
	}
}
