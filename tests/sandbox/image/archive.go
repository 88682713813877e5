package image

import (
	"archive/tar"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

const (
	architecture = runtime.GOARCH
	folderMode   = 0o755
	programMode  = 0o755
	fileMode     = 0o644
	permissions  = fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky
)

// entry is one member of the layer's archive.
type entry struct {
	path   string // without a leading slash
	source string
	body   []byte
	mode   fs.FileMode
	link   string
}

// entries lists the members sorted by path, each path once (what is named later
// wins), with the folders above them.
func (i Image) entries() ([]entry, error) {
	byPath := map[string]entry{}

	for _, tree := range i.Trees {
		if err := addTree(byPath, tree); err != nil {
			return nil, err
		}
	}

	for _, file := range i.Files {
		e := entry{path: inImage(file.Path), source: file.Source, body: file.Content, mode: file.Mode}
		if e.mode == 0 {
			e.mode = defaultMode(file)
		}

		byPath[e.path] = e
	}

	addParents(byPath)

	entries := make([]entry, 0, len(byPath))
	for _, e := range byPath {
		entries = append(entries, e)
	}

	slices.SortFunc(entries, func(a, b entry) int { return cmp.Compare(a.path, b.path) })

	return entries, nil
}

func defaultMode(file File) fs.FileMode {
	if file.Source != "" {
		return programMode
	}

	return fileMode
}

func inImage(p string) string {
	return strings.TrimPrefix(path.Clean("/"+p), "/")
}

func addTree(byPath map[string]entry, tree Tree) error {
	err := filepath.WalkDir(tree.Source, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}

		relative, err := filepath.Rel(tree.Source, file)
		if err != nil {
			return fmt.Errorf("name %s: %w", file, err)
		}

		e := entry{path: inImage(path.Join(tree.Path, relative)), source: file}
		if e.path == "" || !belongs(d.Type()) {
			return nil // the root itself; devices and sockets
		}

		if err := e.look(d); err != nil {
			return err
		}

		byPath[e.path] = e

		return nil
	})
	if err != nil {
		return fmt.Errorf("walk %s: %w", tree.Source, err)
	}

	return nil
}

// belongs tells whether an image has members of the type.
func belongs(kind fs.FileMode) bool {
	return kind.IsRegular() || kind.IsDir() || kind&fs.ModeSymlink != 0
}

// look fills in what the file itself tells.
func (e *entry) look(d fs.DirEntry) error {
	info, err := d.Info()
	if err != nil {
		return fmt.Errorf("look at %s: %w", e.source, err)
	}

	e.mode = info.Mode()
	if e.mode&fs.ModeSymlink == 0 {
		return nil
	}

	if e.link, err = os.Readlink(e.source); err != nil {
		return fmt.Errorf("read the link %s: %w", e.source, err)
	}

	return nil
}

func addParents(byPath map[string]entry) {
	paths := make([]string, 0, len(byPath))
	for p := range byPath {
		paths = append(paths, p)
	}

	for _, p := range paths {
		for parent := path.Dir(p); parent != "."; parent = path.Dir(parent) {
			if _, there := byPath[parent]; !there {
				byPath[parent] = entry{path: parent, mode: fs.ModeDir | folderMode}
			}
		}
	}
}

// archive streams the members as a tar archive without anything that differs from
// one machine or day to another.
func archive(entries []entry) io.ReadCloser {
	reader, writer := io.Pipe()

	go func() {
		out := tar.NewWriter(writer)

		var err error
		for _, e := range entries {
			if err = e.write(out); err != nil {
				break
			}
		}

		if err == nil {
			err = out.Close()
		}

		writer.CloseWithError(err)
	}()

	return reader
}

func (e entry) write(out *tar.Writer) error {
	header := &tar.Header{
		Name:    e.path,
		Mode:    int64(tarMode(e.mode)),
		ModTime: time.Unix(0, 0),
		Format:  tar.FormatPAX,
	}

	switch {
	case e.mode.IsDir():
		header.Typeflag, header.Name = tar.TypeDir, e.path+"/"

		return writeHeader(out, header)
	case e.link != "":
		header.Typeflag, header.Linkname = tar.TypeSymlink, e.link

		return writeHeader(out, header)
	default:
		return e.writeFile(out, header)
	}
}

func (e entry) writeFile(out *tar.Writer, header *tar.Header) error {
	var body io.Reader = bytes.NewReader(e.body)

	header.Typeflag, header.Size = tar.TypeReg, int64(len(e.body))

	if e.source != "" {
		file, err := os.Open(e.source)
		if err != nil {
			return fmt.Errorf("open a source: %w", err)
		}
		defer file.Close() //nolint:errcheck // only read

		info, err := file.Stat()
		if err != nil {
			return fmt.Errorf("look at a source: %w", err)
		}

		body, header.Size = file, info.Size()
	}

	if err := writeHeader(out, header); err != nil {
		return err
	}

	if _, err := io.Copy(out, body); err != nil {
		return fmt.Errorf("archive %s: %w", e.path, err)
	}

	return nil
}

func writeHeader(out *tar.Writer, header *tar.Header) error {
	if err := out.WriteHeader(header); err != nil {
		return fmt.Errorf("archive %s: %w", header.Name, err)
	}

	return nil
}

// tarMode translates the permissions: Go keeps the three special bits elsewhere.
func tarMode(mode fs.FileMode) uint32 {
	bits := uint32(mode.Perm())

	for flag, bit := range map[fs.FileMode]uint32{fs.ModeSetuid: 0o4000, fs.ModeSetgid: 0o2000, fs.ModeSticky: 0o1000} {
		if mode&permissions&flag != 0 {
			bits |= bit
		}
	}

	return bits
}
