package monitoring

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"
)

// targetLabels are those that Prometheus adds, by the module's PodMonitors.
var targetLabels = []string{"job", "instance", "pod", "plane", "tier", "__name__"}

var row = regexp.MustCompile("^\\| `(system_s3_\\w+)` \\| (\\w+) \\| ([^|]*) \\|")

// declared are the series of the documentation's table with their labels, and `up`, which is Prometheus' own.
func declared(t *testing.T) map[string][]string {
	t.Helper()
	page, err := os.ReadFile(root + "/docs/METRICS.md")
	require.NoError(t, err)
	known := map[string][]string{"up": targetLabels}
	for line := range strings.Lines(string(page)) {
		found := row.FindStringSubmatch(line)
		if found == nil {
			continue
		}
		labels := slices.Clone(targetLabels)
		for label := range strings.SplitSeq(found[3], ", ") {
			labels = append(labels, strings.Trim(label, "` "))
		}
		if found[2] != "histogram" {
			known[found[1]] = labels
			continue
		}
		for _, suffix := range []string{"_sum", "_count"} {
			known[found[1]+suffix] = labels
		}
		known[found[1]+"_bucket"] = append(slices.Clone(labels), "le")
	}
	require.Greater(t, len(known), 30)
	return known
}

// dashboard is what matters here of Grafana's JSON.
type dashboard struct {
	Title  string `json:"title"`
	Panels []struct {
		Title   string `json:"title"`
		Type    string `json:"type"`
		Targets []struct {
			Expr string `json:"expr"`
		} `json:"targets"`
	} `json:"panels"`
	Templating struct {
		List []struct {
			Name  string `json:"name"`
			Type  string `json:"type"`
			Query any    `json:"query"`
		} `json:"list"`
	} `json:"templating"`
}

func dashboards(t *testing.T) map[string]dashboard {
	t.Helper()
	paths, err := filepath.Glob(root + "/monitoring/grafana-dashboards/*/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	found := map[string]dashboard{}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		var d dashboard
		require.NoError(t, json.Unmarshal(data, &d), path)
		found[path] = d
	}
	return found
}

// filled is a dashboard's query with its variables filled in, as Grafana does it.
func filled(expr string) string {
	return strings.NewReplacer("$__rate_interval", "2m", "$__interval", "1m", "$namespace", ".*", "$name", ".*").Replace(expr)
}

// queries are all of alerts and dashboards, by where they stand.
func queries(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for name, r := range alerts(t) {
		all["alert "+name] = r.Expr
	}
	maps.Copy(all, panels(t))
	return all
}

// panels are the queries of the dashboards.
func panels(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for path, d := range dashboards(t) {
		for _, p := range d.Panels {
			require.True(t, p.Type == "row" || len(p.Targets) > 0, "%s: %s asks nothing", path, p.Title)
			for i, target := range p.Targets {
				all[filepath.Base(path)+": "+p.Title+" "+string(rune('A'+i))] = filled(target.Expr)
			}
		}
		for _, v := range d.Templating.List {
			if query, ok := v.Query.(map[string]any); ok {
				text, _ := query["query"].(string)
				all[filepath.Base(path)+": variable "+v.Name] = valuesOf(t, filled(text))
			}
		}
	}
	return all
}

var labelValues = regexp.MustCompile(`^label_values\((.*), *(\w+)\)$`)

// valuesOf turns Grafana's label_values into a query.
func valuesOf(t *testing.T, query string) string {
	t.Helper()
	found := labelValues.FindStringSubmatch(query)
	require.NotNil(t, found, query)
	return "group by (" + found[2] + ") (" + found[1] + ")"
}

func TestQueriesKnowOnlyWhatIsDeclared(t *testing.T) {
	known, parse, used := declared(t), parser.NewParser(parser.Options{}), map[string]bool{}
	for where, query := range queries(t) {
		expr, err := parse.ParseExpr(query)
		require.NoError(t, err, "%s: %s", where, query)
		parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
			switch n := node.(type) {
			case *parser.VectorSelector:
				labels, ok := known[n.Name]
				require.True(t, ok, "%s asks for %s, which nobody tells", where, n.Name)
				used[n.Name] = true
				for _, m := range n.LabelMatchers {
					require.Contains(t, labels, m.Name, "%s: %s has no label %s", where, n.Name, m.Name)
				}
			case *parser.AggregateExpr:
				below := labelsBelow(n, known)
				for _, label := range n.Grouping {
					require.Contains(t, below, label, "%s groups by %s, which nothing below has", where, label)
				}
			}
			return nil
		})
	}
	for name := range known {
		if !strings.HasSuffix(name, "_sum") && !strings.HasSuffix(name, "_count") {
			require.True(t, used[name], "%s is told, and nobody ever looks at it", name)
		}
	}
}

func labelsBelow(n *parser.AggregateExpr, known map[string][]string) []string {
	var labels []string
	parser.Inspect(n.Expr, func(node parser.Node, _ []parser.Node) error {
		if selector, ok := node.(*parser.VectorSelector); ok {
			labels = append(labels, known[selector.Name]...)
		}
		return nil
	})
	return labels
}

// Dashboards must work in a Prometheus of any name.
func TestDashboardsAskTheChosenSource(t *testing.T) {
	for path, d := range dashboards(t) {
		require.True(t, slices.ContainsFunc(d.Templating.List, func(v struct {
			Name  string `json:"name"`
			Type  string `json:"type"`
			Query any    `json:"query"`
		},
		) bool {
			return v.Name == "ds_prometheus" && v.Type == "datasource"
		}), path)
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, source := range regexp.MustCompile(`"datasource": \{[^}]*\}`).FindAllString(string(data), -1) {
			require.Contains(t, source, `"uid": "$ds_prometheus"`, path)
		}
		require.NotRegexp(t, `https?://`, string(data), "%s: closed clusters reach nothing outside", path)
	}
}
