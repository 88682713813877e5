package platform

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/deckhouse/system-s3/tests/sandbox/image"
)

const (
	// registryPath is the one repository of all the module's images, as Deckhouse releases a module: a digest tells them apart.
	registryPath = "system-s3"
	// moduleUser is the user and group that Deckhouse's modules run under.
	moduleUser = "64535:64535"
)

// Images builds the module's images from the checkout and pushes them to the registry.
// It returns their digests by the names that global.modulesImages.digests uses. An
// image that the checkout does not have yet is left out.
func Images(ctx context.Context, env Env) (map[string]string, error) {
	digests := map[string]string{}

	for _, name := range []string{"controller", "gateway"} {
		sources, err := filepath.Glob(filepath.Join(env.Checkout, "images", name, "*.go"))
		if err != nil || len(sources) == 0 {
			continue
		}

		program := env.path("bin", name)
		if err := buildGo(ctx, build{dir: env.Checkout, pkg: "./images/" + name, out: program}); err != nil {
			return nil, err
		}

		digest, err := push(ctx, env, name, []image.File{{Path: "/" + name, Source: program}})
		if err != nil {
			return nil, err
		}

		digests[name] = digest
	}

	// Upstream's binary is linked to libraries: they go with it, to where its loader looks.
	files, err := image.Libraries(env.Garage)
	if err != nil {
		return nil, fmt.Errorf("package garage: %w", err)
	}

	digests["garage"], err = push(ctx, env, "garage", append(files, image.File{Path: "/garage", Source: env.Garage}))

	return digests, err
}

// push packs an image of one program, at the root under the image's name, and pushes
// it. Templates may name the program with or without the slash.
func push(ctx context.Context, env Env, name string, files []image.File) (string, error) {
	digest, err := image.Push(ctx, env.Registry, registryPath, image.Image{
		Files: files, Entrypoint: []string{"/" + name}, User: moduleUser, Env: []string{"PATH=/"},
	})

	return digest, wrap("make image "+name, err)
}
