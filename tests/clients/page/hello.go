// Command hello stores an object and reads it back.
package main

import (
	"context"
	"io"
	"log"
	"os"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

func main() {
	ctx := context.Background()
	configuration, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		log.Fatal(err)
	}
	client, bucket, key := s3.NewFromConfig(configuration), aws.String(os.Getenv("BUCKET_NAME")), aws.String("hello/go")
	_, err = client.PutObject(ctx, &s3.PutObjectInput{Bucket: bucket, Key: key, Body: strings.NewReader("hello from Go\n")})
	if err != nil {
		log.Fatal(err)
	}
	object, err := client.GetObject(ctx, &s3.GetObjectInput{Bucket: bucket, Key: key})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := io.Copy(os.Stdout, object.Body); err != nil {
		log.Fatal(err)
	}
}
