package artifact

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

const digestBytes = 6

// digest sums up the names and contents of the files under the given paths, in
// the order of their names.
func digest(root string, paths []string) (string, error) {
	sum := sha256.New()

	for _, path := range paths {
		err := filepath.WalkDir(filepath.Join(root, path), func(file string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() {
				return err
			}

			data, err := os.ReadFile(file)
			if err != nil {
				return fmt.Errorf("read a source: %w", err)
			}

			name, err := filepath.Rel(root, file)
			if err != nil {
				return fmt.Errorf("name a source: %w", err)
			}

			_, err = fmt.Fprintf(sum, "%s %d\n%s", name, len(data), data)

			return err //nolint:wrapcheck // a hash does not fail
		})
		if err != nil {
			return "", fmt.Errorf("sum up the sources: %w", err)
		}
	}

	return hex.EncodeToString(sum.Sum(nil)[:digestBytes]), nil
}
