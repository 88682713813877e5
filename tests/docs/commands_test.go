package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes/scheme"
)

// world is what commands may name.
type world struct {
	targets   []string        // of make
	verbs     []string        // of bin/sandbox
	resources map[string]bool // of Kubernetes, by each of their names
	words     string          // of the chart and of lib/names, where the module's objects get theirs
}

var (
	makeTarget = regexp.MustCompile(`(?m)^([a-z0-9-]+):`)
	cobraUse   = regexp.MustCompile(`Use:\s+"([a-z-]+)`)
	crdNames   = regexp.MustCompile(`(?m)^ +(?:plural|singular): ([a-z]+)$|^ +- ([a-z]{2})$`)
	ofPlane    = regexp.MustCompile(`^(data-)?garage-[a-z]+(-metrics)?(-[0-9]+)?$`)
)

// short are kubectl's abbreviations; deckhouse are the platform's resources.
var (
	short     = strings.Fields("po svc cm ns no pv pvc sc sts deploy ds sa ep netpol pdb crd vpa")
	deckhouse = strings.Fields("module modules moduleconfig moduleconfigs mc nodegroup nodegroups")
)

func ourWorld(t *testing.T) world {
	t.Helper()
	w := world{resources: map[string]bool{}}
	for _, m := range makeTarget.FindAllStringSubmatch(text(t, root, "Makefile"), -1) {
		w.targets = append(w.targets, m[1])
	}
	for _, m := range cobraUse.FindAllStringSubmatch(text(t, root+"/tests/sandbox", "*.go"), -1) {
		w.verbs = append(w.verbs, m[1])
	}
	for _, m := range crdNames.FindAllStringSubmatch(text(t, root+"/crds", "systembucket.yaml"), -1) {
		w.resources[m[1]+m[2]] = true
	}
	for kind := range scheme.Scheme.AllKnownTypes() {
		w.resources[strings.ToLower(kind.Kind)], w.resources[strings.ToLower(kind.Kind)+"s"] = true, true
	}
	for _, name := range append(slices.Clone(short), deckhouse...) {
		w.resources[name] = true
	}
	w.words = text(t, root+"/lib/names", "*.go") + text(t, root+"/templates", "*") + text(t, root+"/templates/*", "*")
	require.True(t, w.resources["sb"] && w.resources["systembuckets"] && w.resources["pods"])
	require.True(t, slices.Contains(w.targets, "demo") && slices.Contains(w.verbs, "kubectl"))
	return w
}

// text is all files of a folder that the pattern fits.
func text(t *testing.T, dir, pattern string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, pattern))
	require.NoError(t, err)
	var all strings.Builder
	for _, file := range files {
		if info, err := os.Stat(file); err != nil || info.IsDir() {
			continue
		}
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		all.Write(data)
	}
	require.NotEmpty(t, all.String(), "%s/%s", dir, pattern)
	return all.String()
}

// commandProblems are commands of a page that name what does not exist.
func (w world) commandProblems(p page) []string {
	lines := slices.Clone(p.inline)
	for _, b := range p.blocks {
		if slices.Contains([]string{"shell", "sh", "bash"}, b.language) {
			lines = append(lines, strings.Split(strings.ReplaceAll(b.text, "\\\n", " "), "\n")...)
		}
	}
	var problems []string
	for _, line := range lines {
		for _, words := range commands(line) {
			if err := w.judge(words); err != nil {
				problems = append(problems, fmt.Sprintf("%v: %s", err, line))
			}
		}
	}
	return problems
}

// commands are the words of each command of a line.
func commands(line string) [][]string {
	var all [][]string
	var words []string
	word, quote, begun := "", rune(0), false
	flush := func() {
		if begun {
			words = append(words, word)
		}
		word, begun = "", false
	}
	for _, r := range line {
		switch {
		case r == quote:
			quote = 0
		case quote != 0:
			word += string(r)
		case strings.ContainsRune(`'"`, r):
			quote, begun = r, true
		case strings.ContainsRune("|&;()", r):
			flush()
			all, words = append(all, words), nil
		case unicode.IsSpace(r):
			flush()
		default:
			word, begun = word+string(r), true
		}
	}
	flush()
	return append(all, words)
}

func (w world) judge(words []string) error {
	if len(words) < 2 {
		return nil
	}
	switch words[0] {
	case "make":
		return w.ofMake(words[1:])
	case "kubectl":
		return w.ofKubectl(words[1:])
	case "d8":
		if words[1] == "k" {
			return w.ofKubectl(words[2:])
		}
	case "bin/sandbox":
		if !slices.Contains(w.verbs, words[1]) {
			return fmt.Errorf("the sandbox has no verb %s", words[1])
		}
		if words[1] == "kubectl" {
			return w.ofKubectl(words[2:])
		}
	}
	return nil
}

func (w world) ofMake(words []string) error {
	for _, word := range words {
		if !strings.Contains(word, "=") && !slices.Contains(w.targets, word) {
			return fmt.Errorf("the Makefile has no %s", word)
		}
	}
	return nil
}
