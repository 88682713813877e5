package image

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

var errNoLibrary = errors.New("shared library is not on this machine")

// libraryFolders are where the dynamic loader looks by itself, in its order: in an
// image there is no cache file that would name others.
func libraryFolders() []string {
	triplet := map[string]string{"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}[architecture]

	return []string{"/lib/" + triplet, "/usr/lib/" + triplet, "/lib64", "/lib", "/usr/lib"}
}

// Libraries returns the shared libraries that a program needs, and theirs, and the
// loader. It is empty for a static program.
func Libraries(program string) ([]File, error) {
	found := map[string]File{}
	if err := addLibraries(program, found); err != nil {
		return nil, err
	}

	files := make([]File, 0, len(found))
	for _, file := range found {
		files = append(files, file)
	}

	return files, nil
}

func addLibraries(program string, found map[string]File) error {
	file, err := elf.Open(program)
	if err != nil {
		return fmt.Errorf("read %s: %w", program, err)
	}
	defer file.Close() //nolint:errcheck // only read

	needed, err := file.ImportedLibraries()
	if err != nil {
		return fmt.Errorf("read what %s needs: %w", program, err)
	}

	if loader := interpreter(file); loader != "" {
		found[loader] = File{Path: loader, Source: loader, Mode: programMode}
	}

	for _, library := range needed {
		path, err := locate(library)
		if err != nil {
			return fmt.Errorf("%s needs %s: %w", program, library, err)
		}

		if _, done := found[path]; done {
			continue
		}

		found[path] = File{Path: path, Source: path, Mode: programMode}

		if err := addLibraries(path, found); err != nil {
			return err
		}
	}

	return nil
}

func locate(library string) (string, error) {
	for _, folder := range libraryFolders() {
		path := filepath.Join(folder, library)
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}

	return "", errNoLibrary
}

// interpreter is the path of the loader written in the program, if any.
func interpreter(file *elf.File) string {
	for _, segment := range file.Progs {
		if segment.Type != elf.PT_INTERP || segment.Filesz == 0 {
			continue
		}

		data := make([]byte, segment.Filesz)
		if _, err := segment.ReadAt(data, 0); err != nil {
			return ""
		}

		return string(data[:len(data)-1]) // without the closing NUL
	}

	return ""
}
