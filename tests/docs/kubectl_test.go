package docs

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// verbs of kubectl that the pages use, by what follows: a resource with names, a Pod or resource/name, or something
// that is not looked at.
var (
	ofResources = strings.Fields("get describe delete patch annotate label edit wait")
	ofPods      = strings.Fields("logs exec port-forward rollout")
	ofOther     = strings.Fields("apply create events auth explain drain cordon uncordon top")
	// valued are flags whose value is the next word.
	valued = strings.Fields("-n --namespace -o --output -l --selector -p --patch -c --container -f --filename --for --tail --timeout --raw --type --as --kubeconfig")
)

// placeholder is a label of an alert.
var placeholder = regexp.MustCompile(`{{[^}]*}}`)

// call is a command line of kubectl taken apart.
type call struct {
	verb      string
	namespace string
	selector  string
	words     []string // what is no flag
}

func parseCall(words []string) call {
	var c call
	if end := slices.Index(words, "--"); end >= 0 {
		words = words[:end]
	}
	for awaited := ""; len(words) > 0; words = words[1:] {
		word := words[0]
		flag, value, joined := strings.Cut(word, "=")
		switch {
		case awaited != "":
			c.set(awaited, word)
			awaited = ""
		case !strings.HasPrefix(word, "-"):
			c.words = append(c.words, word)
		case joined:
			c.set(flag, value)
		case slices.Contains(valued, flag):
			awaited = flag
		}
	}
	if len(c.words) > 0 {
		c.verb, c.words = c.words[0], c.words[1:]
	}
	return c
}

func (c *call) set(flag, value string) {
	switch flag {
	case "-n", "--namespace":
		c.namespace = value
	case "-l", "--selector":
		c.selector = value
	}
}

func (w world) ofKubectl(words []string) error {
	c := parseCall(words)
	if app, ok := strings.CutPrefix(c.selector, "app="); ok && !w.knows(app) {
		return fmt.Errorf("nothing has the label app=%s", app)
	}
	switch {
	case slices.Contains(ofOther, c.verb), c.verb == "" && len(words) > 0 && strings.HasPrefix(words[0], "-"):
		return nil
	case len(c.words) == 0 && slices.Contains(slices.Concat(ofResources, ofPods), c.verb):
		return nil // the verb alone is spoken of, or flags choose
	case slices.Contains(ofPods, c.verb):
		return w.ofPod(c)
	case slices.Contains(ofResources, c.verb):
		return w.ofResource(c)
	}
	return fmt.Errorf("kubectl has no verb %q", c.verb)
}

func (w world) ofPod(c call) error {
	target := c.words[0]
	if c.verb == "rollout" {
		if len(c.words) < 2 {
			return fmt.Errorf("kubectl %s of what", c.verb)
		}
		target = c.words[1]
	}
	if resource, name, ok := strings.Cut(target, "/"); ok {
		return w.object(c.namespace, resource, name)
	}
	return w.object(c.namespace, "pod", target)
}

func (w world) ofResource(c call) error {
	if resource, name, ok := strings.Cut(c.words[0], "/"); ok {
		return w.object(c.namespace, resource, name)
	}
	for resource := range strings.SplitSeq(c.words[0], ",") {
		if err := w.object(c.namespace, resource, ""); err != nil {
			return err
		}
	}
	for _, name := range c.words[1:] {
		if strings.Contains(name, "=") || strings.HasSuffix(name, "-") {
			break // a label or an annotation
		}
		if err := w.object(c.namespace, c.words[0], name); err != nil {
			return err
		}
	}
	return nil
}

// object tells whether the resource exists and, in the namespaces of the module, whether the name is one of ours.
func (w world) object(namespace, resource, name string) error {
	if !w.resources[resource] {
		return fmt.Errorf("there is no resource %q", resource)
	}
	if name == "" {
		return nil
	}
	switch {
	case strings.HasPrefix(resource, "module") && name != "system-s3" && name != "global":
		return fmt.Errorf("the module is system-s3, not %s", name)
	case (namespace == "d8-system-s3" || namespace == "d8-system") && !w.knows(name):
		return fmt.Errorf("the chart has no %s %q", resource, name)
	}
	return nil
}

// knows tells whether the chart or lib/names has the name.
func (w world) knows(name string) bool {
	return ofPlane.MatchString(name) || regexp.MustCompile(`(name: |")`+regexp.QuoteMeta(name)+`["\s]`).MatchString(w.words)
}

// alertsPage is the commands that alerts show.
func alertsPage(t *testing.T) page {
	t.Helper()
	rules := placeholder.ReplaceAllString(text(t, root+"/monitoring/prometheus-rules", "*.yaml"), "any")
	require.Contains(t, rules, "d8 k ")
	return page{path: "prometheus-rules", blocks: []block{{language: "bash", text: rules}}}
}

func TestCommandsNameWhatExists(t *testing.T) {
	w := ourWorld(t)
	for _, p := range append(pages(t), alertsPage(t)) {
		assert.Empty(t, w.commandProblems(p), p.path)
	}
	require.Len(t, w.commandProblems(read(t, badPages+"/commands.md")), 9, "each command of the page is wrong")
}
