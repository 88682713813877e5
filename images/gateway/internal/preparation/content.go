package preparation

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/deckhouse/system-s3/lib/names"
)

const (
	contentLength = 16 // bytes: nobody meets the same name twice
	databaseFile  = "db.lmdb/data.mdb"
)

// nameContent are the steps that give the volume's content a name of its own. A disk that was replaced, and metadata that
// were deleted, come back as the same Garage node, so that nothing else tells that what the node had acknowledged is
// gone.
func (c Config) nameContent() ([]step, error) {
	path := filepath.Join(filepath.Dir(c.MetadataDir), names.ContentFile)
	named, err := os.ReadFile(path) //nolint:gosec // below the volume that the flags name
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the name of the volume's content: %w", err)
	}
	database, err := os.Stat(filepath.Join(c.MetadataDir, databaseFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("look for the database: %w", err)
	}
	// An empty file is a database that Garage makes anew without a word.
	kept := err == nil && database.Size() > 0
	if decoded, wrong := hex.DecodeString(string(trim(named))); kept && wrong == nil && len(decoded) == contentLength {
		return nil, nil
	}
	name := make([]byte, contentLength)
	_, _ = rand.Read(name) // never fails
	return []step{c.write("name the content of the volume", path, []byte(hex.EncodeToString(name)+"\n"))}, nil
}
