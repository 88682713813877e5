package secret

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/deckhouse/system-s3/lib/names"
)

// seedSize is the size of a plane's seed in bytes.
const seedSize = 32

// Plane is what the gateway needs of its plane's Secret.
type Plane struct {
	Seed         []byte // raw, 32 bytes
	AdminToken   string
	MetricsToken string
}

// ReadPlane reads the plane's Secret from the directory it is mounted at.
func ReadPlane(dir string) (Plane, error) {
	files := os.DirFS(dir)
	seed, err := fs.ReadFile(files, names.SeedKey)
	if err != nil {
		return Plane{}, fmt.Errorf("read the plane's seed: %w", err)
	}
	raw, err := hex.DecodeString(string(bytes.TrimSpace(seed)))
	if err != nil || len(raw) != seedSize {
		return Plane{}, errors.New("read the plane's seed: not 64 hexadecimal characters")
	}
	plane := Plane{Seed: raw}
	for key, into := range map[string]*string{names.AdminTokenKey: &plane.AdminToken, names.MetricsTokenKey: &plane.MetricsToken} {
		if *into, err = readToken(files, key); err != nil {
			return Plane{}, err
		}
	}
	return plane, nil
}

// readToken refuses an empty token, which everybody would have.
func readToken(files fs.FS, key string) (string, error) {
	token, err := fs.ReadFile(files, key)
	if err != nil {
		return "", fmt.Errorf("read the plane's %s: %w", key, err)
	}
	token = bytes.TrimSpace(token)
	if len(token) == 0 {
		return "", fmt.Errorf("read the plane's %s: it is empty", key)
	}
	return string(token), nil
}
