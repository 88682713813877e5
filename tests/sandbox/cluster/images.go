package cluster

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/deckhouse/system-s3/tests/sandbox/address"
	"github.com/deckhouse/system-s3/tests/sandbox/artifact"
	"github.com/deckhouse/system-s3/tests/sandbox/image"
)

const (
	registryLimit    = 20 * time.Second
	registryInterval = 50 * time.Millisecond
)

// images are the references of the images that every cluster has.
type images struct{ pause, coreDNS string }

// images pushes them and returns their references.
func (c Cluster) images(ctx context.Context) (images, error) {
	if err := awaitRegistry(ctx); err != nil {
		return images{}, err
	}

	var (
		found images
		err   error
	)

	if found.pause, err = c.push(ctx, artifact.Pause()); err != nil {
		return images{}, err
	}

	if found.coreDNS, err = c.push(ctx, artifact.CoreDNS()); err != nil {
		return images{}, err
	}

	return found, nil
}

// push makes an image out of a static program.
func (c Cluster) push(ctx context.Context, a artifact.Artifact) (string, error) {
	program, err := c.Store.Ensure(ctx, a)
	if err != nil {
		return "", fmt.Errorf("build %s: %w", a.Name, err)
	}

	repository := "sandbox/" + a.Name

	digest, err := image.Push(ctx, address.Registry(), repository, image.Image{
		Files:      []image.File{{Path: "/" + a.Name, Source: program}},
		Entrypoint: []string{"/" + a.Name},
	})
	if err != nil {
		return "", fmt.Errorf("push %s: %w", a.Name, err)
	}

	return image.Reference(address.Registry(), repository, digest), nil
}

func awaitRegistry(ctx context.Context) error {
	answers := func(ctx context.Context) (bool, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address.Registry()+"/v2/", http.NoBody)
		if err != nil {
			return false, fmt.Errorf("ask the registry: %w", err)
		}

		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return false, nil //nolint:nilerr // not yet
		}

		return response.StatusCode == http.StatusOK, response.Body.Close()
	}

	if err := wait.PollUntilContextTimeout(ctx, registryInterval, registryLimit, true, answers); err != nil {
		return fmt.Errorf("registry does not answer: %w", err)
	}

	return nil
}
