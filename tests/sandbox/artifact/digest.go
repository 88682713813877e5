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
	sum, files := sha256.New(), os.DirFS(root)

	for _, path := range paths {
		err := fs.WalkDir(files, filepath.Clean(path), func(name string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() {
				return err
			}

			data, err := fs.ReadFile(files, name)
			if err != nil {
				return fmt.Errorf("read a source: %w", err)
			}

			_, err = fmt.Fprintf(sum, "%s %d\n%s", name, len(data), data)

			return err
		})
		if err != nil {
			return "", fmt.Errorf("sum up the sources: %w", err)
		}
	}

	return hex.EncodeToString(sum.Sum(nil)[:digestBytes]), nil
}
