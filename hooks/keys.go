package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"

	"github.com/deckhouse/module-sdk/pkg"
	objectpatch "github.com/deckhouse/module-sdk/pkg/object-patch"
	"github.com/deckhouse/module-sdk/pkg/registry"

	"github.com/deckhouse/system-s3/lib/access"
	"github.com/deckhouse/system-s3/lib/names"
)

// keyRingPath is where the JSON of the key ring is published for the chart.
const keyRingPath = "systemS3.internal.keyRing"

const ringSecretBytes = 32

var _ = registry.RegisterFunc(keysConfig(), guarded(rotateKeys))

// ringSnapshot is what is left of the Secret that holds the ring.
type ringSnapshot struct {
	Ring []byte `json:"ring"`
}

func keysConfig() *pkg.HookConfig {
	return &pkg.HookConfig{
		OnBeforeHelm: &pkg.OrderedConfig{Order: orderKeys},
		Schedule:     []pkg.ScheduleConfig{{Name: "rotation", Crontab: "17 * * * *"}},
		Kubernetes: []pkg.KubernetesConfig{silent(pkg.KubernetesConfig{
			Name:              secretsSnapshot,
			APIVersion:        "v1",
			Kind:              "Secret",
			NamespaceSelector: &pkg.NamespaceSelector{NameSelector: &pkg.NameSelector{MatchNames: []string{names.Namespace}}},
			NameSelector:      &pkg.NameSelector{MatchNames: []string{names.KeyRingSecret}},
			JqFilter:          `{ring: .data."ring.json"}`,
		})},
	}
}

// rotateKeys publishes the ring of signing keys, with a new key when it is time. What was issued with a key outlives
// that key's successor, so a rotation interrupts nobody.
func rotateKeys(_ context.Context, input *pkg.HookInput) error {
	ring, err := currentRing(input)
	if err != nil {
		return err
	}
	secret := make([]byte, ringSecretBytes)
	if _, err := rand.Read(secret); err != nil {
		return fmt.Errorf("read random bytes: %w", err)
	}
	data, err := ring.Rotate(input.DC.GetClock().Now(), secret).Marshal()
	if err != nil {
		return err
	}
	input.Values.Set(keyRingPath, string(data))
	return nil
}

// currentRing is the ring in the Secret, else in the values, else an empty one. Unlike a plane's secrets a broken ring
// is replaced: that costs half an hour of keys, and stopping would cost all access.
func currentRing(input *pkg.HookInput) (access.Ring, error) {
	snapshots, err := objectpatch.UnmarshalToStruct[ringSnapshot](input.Snapshots, secretsSnapshot)
	if err != nil {
		return access.Ring{}, errors.New("read Secret key-ring: not a Secret with ring.json") // the decoder's message may quote it
	}
	for _, s := range snapshots {
		ring, err := access.ParseRing(s.Ring)
		if err == nil {
			return ring, nil
		}
		input.Logger.Warn("Secret key-ring is unreadable and is replaced: keys in use are refused until their owners ask for new ones", slog.String("error", err.Error()))
	}
	if ring, err := access.ParseRing([]byte(input.Values.Get(keyRingPath).String())); err == nil {
		return ring, nil
	}
	return access.Ring{}, nil
}
