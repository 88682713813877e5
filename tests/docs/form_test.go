package docs

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// longestDescription is what the platform's search shows of a page.
const longestDescription = 150

// frontProblems: the platform lists a page by its front matter.
func frontProblems(p page) []string {
	if !p.published() {
		return nil
	}
	var problems []string
	for _, key := range []string{"title", "description"} {
		if p.front[key] == "" {
			problems = append(problems, "the front matter has no "+key)
		}
	}
	if n := utf8.RuneCountInString(p.front["description"]); n > longestDescription {
		problems = append(problems, fmt.Sprintf("the description has %d characters, more than %d", n, longestDescription))
	}
	return problems
}

// linkProblems are links inside the repository that lead nowhere.
func linkProblems(t *testing.T, p page) []string {
	t.Helper()
	var problems []string
	for _, link := range p.links {
		target, err := url.Parse(link)
		if err != nil {
			problems = append(problems, link+" is no link")
			continue
		}
		if target.Scheme != "" || strings.HasPrefix(target.Path, "/") {
			continue // elsewhere
		}
		path := p.path
		if target.Path != "" {
			path = filepath.Join(filepath.Dir(p.path), target.Path)
		}
		if _, err := os.Stat(path); err != nil {
			problems = append(problems, link+" leads nowhere")
			continue
		}
		if target.Fragment != "" && !read(t, path).has(target.Fragment) {
			problems = append(problems, link+": the page has no such heading")
		}
	}
	return problems
}

func (p page) has(anchor string) bool {
	return slices.ContainsFunc(p.headings, func(h heading) bool { return h.anchor == anchor })
}

// spoken are languages of blocks that say something to people, and so are translated.
var spoken = []string{"text", ""}

var comment = regexp.MustCompile(`(?m)(^|\s+)(#|//) .*$`)

// twinProblems are differences of form between a page and its Russian twin.
func twinProblems(t *testing.T, p page) []string {
	t.Helper()
	if !p.published() || p.russian() {
		return nil
	}
	path := strings.TrimSuffix(p.path, ".md") + ".ru.md"
	if _, err := os.Stat(path); err != nil {
		return []string{"there is no " + filepath.Base(path)}
	}
	twin := read(t, path)
	var problems []string
	differ := func(what string, ours, theirs any) {
		if a, b := fmt.Sprint(ours), fmt.Sprint(theirs); a != b {
			problems = append(problems, fmt.Sprintf("%s differ from the twin's: %s and %s", what, a, b))
		}
	}
	differ("the levels of headings", p.levels(), twin.levels())
	differ("the rows of tables", p.rows, twin.rows)
	differ("the links", p.targets(), twin.targets())
	differ("the blocks of code", len(p.blocks), len(twin.blocks))
	for i := range min(len(p.blocks), len(twin.blocks)) {
		ours, theirs := p.blocks[i], twin.blocks[i]
		differ(fmt.Sprintf("languages of block %d", i+1), ours.language, theirs.language)
		if !slices.Contains(spoken, ours.language) {
			differ(fmt.Sprintf("words of block %d", i+1), comment.ReplaceAllString(ours.text, ""), comment.ReplaceAllString(theirs.text, ""))
		}
	}
	return problems
}

func (p page) levels() []int {
	levels := make([]int, 0, len(p.headings))
	for _, h := range p.headings {
		levels = append(levels, h.level)
	}
	return levels
}

// targets are the pages and pictures that the page leads to, by the names that both languages have.
func (p page) targets() []string {
	var targets []string
	for _, link := range p.links {
		link, _, _ = strings.Cut(link, "#")
		targets = append(targets, strings.NewReplacer(".ru.md", ".md", ".ru.svg", ".svg", ".ru.png", ".png").Replace(link))
	}
	slices.Sort(targets)
	return slices.Compact(targets)
}

func TestFrontMatter(t *testing.T) {
	for _, p := range pages(t) {
		assert.Empty(t, frontProblems(p), p.path)
	}
	require.NotEmpty(t, frontProblems(read(t, badPages+"/front.md")))
}

func TestLinksLeadSomewhere(t *testing.T) {
	for _, p := range pages(t) {
		assert.Empty(t, linkProblems(t, p), p.path)
	}
	require.Len(t, linkProblems(t, read(t, badPages+"/links.md")), 3, "a page, a heading here and one elsewhere")
}

func TestTwinsAreAlike(t *testing.T) {
	for _, p := range pages(t) {
		assert.Empty(t, twinProblems(t, p), p.path)
	}
	require.Len(t, twinProblems(t, read(t, badPages+"/twins.md")), 5, "headings, rows, links, blocks, words")
	require.Len(t, twinProblems(t, read(t, badPages+"/front.md")), 1, "no twin")
}
