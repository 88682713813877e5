package browser_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	browser "github.com/deckhouse/system-s3/tests/page"
)

func awaited(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }

// node of the tree that the browser tells to screen readers. The library's own type does not know what newer browsers
// say in it.
type node struct {
	Ignored bool  `json:"ignored"`
	Role    value `json:"role"`
	Name    value `json:"name"`
}

type value struct {
	Value any `json:"value"`
}

func tree(t *testing.T, b *browser.Browser) []node {
	t.Helper()
	var answer struct {
		Nodes []node `json:"nodes"`
	}
	require.NoError(t, b.Run(chromedp.ActionFunc(func(ctx context.Context) error {
		return chromedp.FromContext(ctx).Target.Execute(ctx, "Accessibility.getFullAXTree", nil, &answer)
	})))
	return answer.Nodes
}

// unnamed is the roles of those that a person uses or moves by and that have no name.
func unnamed(t *testing.T, b *browser.Browser) []string {
	t.Helper()
	var found []string
	for _, node := range tree(t, b) {
		switch role := fmt.Sprint(node.Role.Value); role {
		case "link", "button", "searchbox", "textbox", "combobox", "checkbox", "progressbar", "navigation", "table", "search", "region":
			if node.Name.Value == nil || node.Name.Value == "" {
				found = append(found, role)
			}
		}
	}
	return found
}

func rolesOf(t *testing.T, b *browser.Browser) map[string]int {
	t.Helper()
	roles := map[string]int{}
	for _, node := range tree(t, b) {
		if !node.Ignored {
			roles[fmt.Sprint(node.Role.Value)]++
		}
	}
	return roles
}
