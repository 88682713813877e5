package docs

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

const (
	root     = "../.."
	badPages = "testdata"
)

// page is what the checks look at.
type page struct {
	path     string
	front    map[string]string // nil without front matter
	headings []heading
	blocks   []block
	links    []string
	inline   []string // `code` in the text
	rows     int      // of tables
}

type heading struct {
	level  int
	anchor string
}

type block struct{ language, text string }

var (
	headingLine = regexp.MustCompile(`^(#{1,6}) +(.+)$`)
	fenceLine   = regexp.MustCompile("^( *)```([a-z]*)$")
	mark        = regexp.MustCompile(`\[[^\]]*\]\(([^)\s]+)\)|(?:src|href)="([^"]+)"`)
	code        = regexp.MustCompile("`([^`]+)`")
	linkText    = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
)

// read takes a page apart.
func read(t *testing.T, path string) page {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	p := page{path: path}
	if rest, found := bytes.CutPrefix(data, []byte("---\n")); found {
		front, body, closed := bytes.Cut(rest, []byte("\n---\n"))
		require.True(t, closed, "%s: the front matter has no end", path)
		require.NoError(t, yaml.Unmarshal(front, &p.front), path)
		data = body
	}
	var open *block
	indent := ""
	for line := range strings.Lines(string(data)) {
		line = strings.TrimRight(line, "\n")
		fence := fenceLine.FindStringSubmatch(line)
		switch {
		case fence != nil && open == nil:
			open, indent = &block{language: fence[2]}, fence[1]
		case fence != nil:
			p.blocks, open = append(p.blocks, *open), nil
		case open != nil:
			open.text += strings.TrimPrefix(line, indent) + "\n"
		default:
			p.prose(line)
		}
	}
	require.Nil(t, open, "%s: a block of code has no end", path)
	return p
}

func (p *page) prose(line string) {
	if h := headingLine.FindStringSubmatch(line); h != nil {
		p.headings = append(p.headings, heading{level: len(h[1]), anchor: anchor(h[2])})
	}
	if strings.HasPrefix(strings.TrimSpace(line), "|") {
		p.rows++
	}
	for _, c := range code.FindAllStringSubmatch(line, -1) {
		p.inline = append(p.inline, c[1])
	}
	for _, l := range mark.FindAllStringSubmatch(code.ReplaceAllString(line, "`"), -1) {
		p.links = append(p.links, l[1]+l[2])
	}
}

// anchor is the name that GitHub and the platform's documentation give a heading.
func anchor(title string) string {
	title = linkText.ReplaceAllString(title, "$1")
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
			return unicode.ToLower(r)
		case r == ' ':
			return '-'
		}
		return -1
	}, title)
}

// pages are the documentation of the repository.
func pages(t *testing.T) []page {
	t.Helper()
	return append([]page{read(t, root+"/README.md"), read(t, root+"/CONTRIBUTING.md")}, folder(t, root+"/docs")...)
}

func folder(t *testing.T, dir string) []page {
	t.Helper()
	var all []page
	require.NoError(t, filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".md" {
			all = append(all, read(t, path))
		}
		return err
	}))
	require.NotEmpty(t, all)
	return all
}

// published tells whether the platform's documentation shows the page: all but those for developers.
func (p page) published() bool {
	return filepath.Base(filepath.Dir(p.path)) == "docs" || filepath.Dir(p.path) == badPages
}

func (p page) russian() bool { return strings.HasSuffix(p.path, ".ru.md") }
