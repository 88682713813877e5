package tool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/deckhouse/system-s3/tests/clients/program/trial"
)

const (
	registryAddress = "127.0.0.1:5000"
	registryStart   = 30 * time.Second
)

// registry stores images in a distribution registry in the same Pod, whose storage is the bucket.
type registry struct {
	transport http.RoundTripper
}

// Registry starts the registry; it ends with the Pod.
func Registry(ctx context.Context, p trial.Parameters) (trial.Client, error) {
	transport, err := trial.Transport()
	if err != nil {
		return trial.Client{}, err
	}
	const file = "/tmp/registry.yml"
	configuration := fmt.Sprintf(`version: 0.1
log: {level: panic, accesslog: {disabled: true}}
http: {addr: %s}
storage:
  s3: {region: %s, bucket: %s, regionendpoint: %s, rootdirectory: /%s, forcepathstyle: false}
`, registryAddress, os.Getenv("AWS_REGION"), p.Bucket, os.Getenv("AWS_ENDPOINT_URL_S3"), strings.TrimSuffix(p.Prefix, "/"))
	const private = 0o600
	if err := os.WriteFile(file, []byte(configuration), private); err != nil { //nolint:gosec // a fixed file in the Pod's own folder
		return trial.Client{}, fmt.Errorf("configure the registry: %w", err)
	}
	cmd := exec.CommandContext(ctx, "/registry", "serve", file)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	cmd.Env = append(os.Environ(), "OTEL_TRACES_EXPORTER=none")
	if err := cmd.Start(); err != nil {
		return trial.Client{}, fmt.Errorf("start the registry: %w", err)
	}
	r := registry{transport: transport}
	return trial.Client{Put: r.put, Get: r.get, PutParts: r.put}, r.ready(ctx)
}

func (r registry) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, registryStart)
	defer cancel()
	repository, err := name.NewRepository(registryAddress+"/none", name.Insecure)
	if err != nil {
		return fmt.Errorf("name a repository: %w", err)
	}
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		response, err := http.Get("http://" + repository.RegistryStr() + "/v2/")
		if err == nil {
			return response.Body.Close()
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("the registry does not answer: %w", err)
		}
	}
}

func tag(key string) (name.Tag, error) {
	return name.NewTag(registryAddress+"/"+strings.ToLower(key)+":latest", name.Insecure)
}

// put pushes an image of one layer; the registry moves a layer to its place when it is whole, by a copy and a delete.
func (r registry) put(ctx context.Context, key string, body []byte) error {
	target, err := tag(key)
	if err != nil {
		return err
	}
	image, err := mutate.AppendLayers(empty.Image, static.NewLayer(body, types.DockerUncompressedLayer))
	if err != nil {
		return fmt.Errorf("make an image: %w", err)
	}
	return remote.Write(target, image, remote.WithContext(ctx), remote.WithTransport(r.transport))
}

// get pulls it; the registry sends whoever asks for a layer to a signed URL of the bucket.
func (r registry) get(ctx context.Context, key string) (_ []byte, err error) {
	source, err := tag(key)
	if err != nil {
		return nil, err
	}
	image, err := remote.Image(source, remote.WithContext(ctx), remote.WithTransport(r.transport))
	if err != nil {
		return nil, fmt.Errorf("pull the manifest: %w", err)
	}
	var layers []v1.Layer
	if layers, err = image.Layers(); err != nil || len(layers) != 1 {
		return nil, fmt.Errorf("%d layers: %w", len(layers), err)
	}
	content, err := layers[0].Compressed()
	if err != nil {
		return nil, fmt.Errorf("pull the layer: %w", err)
	}
	defer func() { err = errors.Join(err, content.Close()) }()
	var all bytes.Buffer
	_, err = io.Copy(&all, content)
	return all.Bytes(), err
}
