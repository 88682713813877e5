package monitoring

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/template"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// An alert is tried in a story of minutes: until begins all is well, from then on the trouble lasts until ends.
const begins = 10

// trouble is a story that ends in an alert.
type trouble struct {
	labels map[string]string // of the alert, besides those of the rule
	// series by their names: what they say while all is well, while the trouble lasts, and after it.
	series map[string][3]string
	// delay is how many minutes the trouble takes until the expression sees it, end how many until it sees the end.
	delay, end int
}

const (
	gone  = "stale"
	quiet = "_"
)

// reason is the story of a condition of the Module: the reason comes and goes.
func reason(conditionType, status, reason string) trouble {
	return trouble{
		labels: map[string]string{"type": conditionType, "reason": reason},
		series: map[string][3]string{
			fmt.Sprintf(`system_s3_condition{type=%q,status=%q,reason=%q,pod="controller-a"}`, conditionType, status, reason): {quiet, "1", gone},
			fmt.Sprintf(`system_s3_condition{type=%q,status="True",reason="AllIsWell",pod="controller-a"}`, conditionType):    {"1", gone, "1"},
		},
	}
}

// away has a replica away for as long as the trouble lasts.
func away(tr trouble) trouble {
	for replica, story := range map[string][3]string{"garage-a-0": {"1", "1", "1"}, "garage-a-1": {"1", "0", "1"}} {
		tr.series[fmt.Sprintf(`system_s3_replica_up{plane="a",replica=%q,node="n"}`, replica)] = story
	}
	return tr
}

// bucketReason is the story of a condition of a SystemBucket; another bucket is well all the time.
func bucketReason(conditionType, status, reason string) trouble {
	series := func(name, status, reason string) string {
		return fmt.Sprintf(`system_s3_bucket_condition{namespace="d8-app",name=%q,type=%q,status=%q,reason=%q}`, name, conditionType, status, reason)
	}
	return trouble{
		labels: map[string]string{"namespace": "d8-app", "name": "data", "reason": reason},
		series: map[string][3]string{
			series("data", status, reason):       {quiet, "1", gone},
			series("data", "True", "AllIsWell"):  {"1", gone, "1"},
			series("other", "True", "AllIsWell"): {"1", "1", "1"},
		},
	}
}

func troubles() map[string]trouble {
	const month = "2592000"
	return map[string]trouble{
		"D8SystemS3QuorumLost":          reason("StorageReady", "False", "QuorumLost"),
		"D8SystemS3StateUnreadable":     reason("StorageReady", "False", "StateUnreadable"),
		"D8SystemS3LayoutFailed":        reason("StorageReady", "False", "LayoutFailed"),
		"D8SystemS3Starting":            reason("StorageReady", "False", "Starting"),
		"D8SystemS3NoStorageClass":      reason("StorageReady", "False", "NoStorageClass"),
		"D8SystemS3Degraded":            away(reason("StorageReady", "True", "Degraded")),
		"D8SystemS3PlacementBlocked":    reason("PlacementReady", "False", "PlacementBlocked"),
		"D8SystemS3ReplicaPinned":       reason("PlacementReady", "False", "ReplicaPinned"),
		"D8SystemS3Exhausted":           reason("CapacityReady", "False", "Exhausted"),
		"D8SystemS3ExpansionNotAllowed": reason("CapacityReady", "False", "ExpansionNotAllowed"),
		"D8SystemS3ExpansionFailed":     reason("CapacityReady", "False", "ExpansionFailed"),
		"D8SystemS3MigrationBlocked":    reason("MigrationReady", "False", "Blocked"),

		"D8SystemS3BucketQuotaReached":  bucketReason("QuotaAvailable", "False", "QuotaReached"),
		"D8SystemS3BucketNearQuota":     bucketReason("QuotaAvailable", "True", "NearQuota"),
		"D8SystemS3BucketBackendError":  bucketReason("Ready", "False", "BackendError"),
		"D8SystemS3BucketInvalidSpec":   bucketReason("Ready", "False", "InvalidSpec"),
		"D8SystemS3BucketDeleting":      bucketReason("Ready", "False", "Deleting"),
		"D8SystemS3BucketStoreMadeAnew": bucketReason("DataLost", "True", "StoreMadeAnew"),

		"D8SystemS3WritesRefused": {
			labels: map[string]string{"plane": "a"},
			series: map[string][3]string{
				`system_s3_writes_refused{plane="a",pod="garage-a-0"}`: {"0", "1", "0"}, `system_s3_writes_refused{plane="a",pod="garage-a-1"}`: {"0", "0", "0"},
			},
		},
		"D8SystemS3RollStalled": {
			labels: map[string]string{"plane": "a"}, delay: 6*60 - 1,
			series: map[string][3]string{`system_s3_plane_outdated_replicas{plane="a",pod="controller-a"}`: {"0", "2", "1"}},
		},
		"D8SystemS3MigrationStuck": {
			labels: map[string]string{"source": "a", "target": "b"},
			series: map[string][3]string{`system_s3_migration_waiting{source="a",target="b",pod="controller-a"}`: {"0", "1", "0"}},
		},
		"D8SystemS3ControllerSilent": {
			series: map[string][3]string{`system_s3_condition{type="StorageReady",status="True",reason="Ready"}`: {"1", gone, "1"}},
		},
		"D8SystemS3STSFailing": {
			delay: 1, end: 2,
			series: map[string][3]string{
				`system_s3_sts_exchange_duration_seconds_count{result="issued",pod="controller-a"}`: {"+60", "+60", "+60"},
				`system_s3_sts_exchange_duration_seconds_count{result="failed",pod="controller-a"}`: {"+0", "+60", "+0"},
			},
		},
		"D8SystemS3RequestsFailing": {
			delay: 1, end: 5,
			series: map[string][3]string{
				`system_s3_requests_total{bucket="b",operation="read",code="OK",pod="garage-a-0"}`:             {"+600", "+600", "+600"},
				`system_s3_requests_total{bucket="b",operation="read",code="NoSuchKey",pod="garage-a-0"}`:      {"+600", "+600", "+600"},
				`system_s3_requests_total{bucket="b",operation="write",code="InternalError",pod="garage-a-0"}`: {"+0", "+300", "+0"},
			},
		},
		"D8SystemS3CertificateExpires": {
			labels: map[string]string{"component": "gateway"},
			series: map[string][3]string{
				`system_s3_certificate_expiry_timestamp_seconds{component="gateway",pod="garage-a-0"}`: {"3" + month, "2500000", "3" + month},
				`system_s3_certificate_expiry_timestamp_seconds{component="gateway",pod="garage-a-1"}`: {"3" + month, "3" + month, "3" + month},
			},
		},
		"D8SystemS3KeyRingStale": {
			labels: map[string]string{"component": "controller"},
			series: map[string][3]string{
				`system_s3_key_ring_newest_timestamp_seconds{component="controller",pod="controller-a"}`: {"0", "-300000", "0"},
			},
		},
		"D8SystemS3GatewayNotScraped": {
			labels: map[string]string{"plane": "a"},
			series: map[string][3]string{`up{job="system-s3-gateway",plane="a",pod="garage-a-0"}`: {"1", "0", "1"}},
		},
	}
}

// points are a series in promtool's words.
func points(story [3]string, lasting int) string {
	const after = 30
	if strings.HasPrefix(story[0], "+") { // a counter
		var out []string
		value, step := 0, 0
		for minute := range begins + lasting + after {
			_, _ = fmt.Sscanf(story[phase(minute, lasting)], "+%d", &step)
			value += step
			out = append(out, fmt.Sprint(value))
		}
		return strings.Join(out, " ")
	}
	var out []string
	for i, length := range []int{begins, lasting, after} {
		value := story[i]
		switch {
		case value == gone:
			out = append(out, gone)
			value = quiet
			length--
			fallthrough
		case length > 0:
			out = append(out, strings.Repeat(value+" ", length))
		}
	}
	return strings.Join(strings.Fields(strings.Join(out, " ")), " ")
}

func phase(minute, lasting int) int {
	switch {
	case minute < begins:
		return 0
	case minute < begins+lasting:
		return 1
	default:
		return 2
	}
}

type expectation struct {
	EvalTime  string  `yaml:"eval_time"`
	Alertname string  `yaml:"alertname"`
	Alerts    []alert `yaml:"exp_alerts"`
}

type alert struct {
	Labels      map[string]string `yaml:"exp_labels"`
	Annotations map[string]string `yaml:"exp_annotations"`
}

type series struct {
	Series string `yaml:"series"`
	Values string `yaml:"values"`
}

type story struct {
	Name     string        `yaml:"name"`
	Interval string        `yaml:"interval"`
	Series   []series      `yaml:"input_series"`
	Alerts   []expectation `yaml:"alert_rule_test"`
}

// expected is the alert that the rule raises.
func expected(t *testing.T, r rule, labels map[string]string) alert {
	t.Helper()
	a := alert{Labels: maps.Clone(r.Labels), Annotations: map[string]string{}}
	maps.Copy(a.Labels, labels)
	for name, text := range r.Annotations {
		parsed, err := template.New(name).Parse("{{ $labels := . }}" + text)
		require.NoError(t, err)
		var out bytes.Buffer
		require.NoError(t, parsed.Execute(&out, labels))
		a.Annotations[name] = out.String()
	}
	return a
}

// tell makes the story of an alert: silent until the trouble has lasted as long as the rule waits, then raised, then
// silent in the moment after the end.
func tell(t *testing.T, r rule, tr trouble) story {
	t.Helper()
	wait, err := time.ParseDuration(r.For)
	require.NoError(t, err, r.Alert)
	patience := int(wait.Minutes())
	lasting := tr.delay + patience + 5
	s := story{Name: r.Alert, Interval: "1m"}
	for _, name := range slices.Sorted(maps.Keys(tr.series)) {
		s.Series = append(s.Series, series{name, points(tr.series[name], lasting)})
	}
	raised := []alert{expected(t, r, tr.labels)}
	for minute, want := range map[int][]alert{
		begins - 1: nil, begins + tr.delay + patience - 1: nil, begins + tr.delay + patience: raised,
		begins + lasting - 1: raised, begins + lasting + tr.end: nil,
	} {
		s.Alerts = append(s.Alerts, expectation{fmt.Sprintf("%dm", minute), r.Alert, want})
	}
	return s
}

// promtool tries the stories.
func promtool(t *testing.T, stories []story) {
	t.Helper()
	dir := t.TempDir()
	write := func(name string, content any) string {
		data, err := yaml.Marshal(content)
		require.NoError(t, err)
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, data, 0o600))
		return path
	}
	var all []map[string]any
	for _, g := range groups(t) {
		all = append(all, map[string]any{"name": g.Name, "rules": g.Rules})
	}
	rules := write("rules.yaml", map[string]any{"groups": all})
	test := write("test.yaml", map[string]any{"rule_files": []string{rules}, "evaluation_interval": "1m", "tests": stories})
	for _, args := range [][]string{{"check", "rules", "--lint=all", "--lint-fatal", rules}, {"test", "rules", test}} {
		out, err := exec.CommandContext(t.Context(), program(t, "promtool"), args...).CombinedOutput()
		require.NoError(t, err, string(out))
	}
}

func TestEachAlertIsRaisedAndEnds(t *testing.T) {
	known, told := alerts(t), troubles()
	require.ElementsMatch(t, slices.Collect(maps.Keys(known)), slices.Collect(maps.Keys(told)), "each alert needs its story")
	var stories []story
	for _, name := range slices.Sorted(maps.Keys(told)) {
		stories = append(stories, tell(t, known[name], told[name]))
	}
	promtool(t, stories)
}

// A move that somebody asked for, and what the module does by itself, wakes nobody.
func TestPlannedWorkRaisesNothing(t *testing.T) {
	const hours = 13 * 60
	condition := func(conditionType, reason, status, values string) series {
		return series{fmt.Sprintf(`system_s3_condition{type=%q,status=%q,reason=%q}`, conditionType, status, reason), values}
	}
	// A replica is away for ten minutes while it moves or is restarted, and then filled from the others for hours.
	away := "_x60 1x400 stale _x50 1x9 stale _x200"
	up := "1x60 0x10 1x440 0x9 1x300"
	present := "1x59 stale _x399 1x49 stale _x9 1x300"
	planned := story{Name: "planned", Interval: "1m", Series: []series{
		condition("StorageReady", "Degraded", "True", away), condition("StorageReady", "Ready", "True", present),
		{`system_s3_replica_up{plane="a",replica="garage-a-0",node="n"}`, up},
		{`system_s3_replica_up{plane="a",replica="garage-a-1",node="m"}`, "1x800"},
		condition("PlacementReady", "Relocating", "False", fmt.Sprintf("1x%d", hours)),
		condition("CapacityReady", "Growing", "True", fmt.Sprintf("1x%d", hours)),
		condition("MigrationReady", "Copying", "False", fmt.Sprintf("1x%d stale", hours/2)),
		condition("MigrationReady", "Verifying", "False", fmt.Sprintf("_x%d 1x100 stale", hours/2+1)),
		condition("MigrationReady", "Switching", "False", fmt.Sprintf("_x%d 1x20", hours/2+102)),
		{`system_s3_plane_outdated_replicas{plane="a"}`, fmt.Sprintf("3x%d 2x%d 1x%d 0x100", hours/4, hours/4, hours/4)},
		{`system_s3_writes_held{plane="a"}`, fmt.Sprintf("0x%d 1x5 0x200", hours/2)},
		{`up{job="system-s3-gateway",plane="a",pod="garage-a-0"}`, fmt.Sprintf("1x60 0x10 1x%d", hours)},
		{`system_s3_bucket_condition{namespace="d8-app",name="data",type="Ready",status="False",reason="WaitingForStorage"}`, "1x30 stale"},
	}}
	for name := range alerts(t) {
		for minute := 1; minute < hours; minute += 7 {
			planned.Alerts = append(planned.Alerts, expectation{fmt.Sprintf("%dm", minute), name, nil})
		}
	}
	promtool(t, []story{planned})
}

// A new leader tells the same condition from another Pod: the alert must not begin anew.
func TestANewLeaderDoesNotResetAnAlert(t *testing.T) {
	r := alerts(t)["D8SystemS3Degraded"]
	series := []series{
		{`system_s3_condition{type="StorageReady",status="True",reason="Degraded",pod="a"}`, "1x8 stale"},
		{`system_s3_condition{type="StorageReady",status="True",reason="Degraded",pod="b"}`, "_x8 1x20"},
		{`system_s3_replica_up{plane="a",replica="garage-a-0",node="",pod="a"}`, "0x8 stale"},
		{`system_s3_replica_up{plane="a",replica="garage-a-0",node="",pod="b"}`, "_x8 0x20"},
	}
	raised := []alert{expected(t, r, map[string]string{"type": "StorageReady", "reason": "Degraded"})}
	promtool(t, []story{{Name: "new leader", Interval: "1m", Series: series, Alerts: []expectation{{"16m", r.Alert, raised}}}})
}

func TestAlertsHaveDeckhousesForm(t *testing.T) {
	for name, r := range alerts(t) {
		require.Regexp(t, `^D8SystemS3[A-Z]`, name)
		require.Regexp(t, `^[2-9]$`, r.Labels["severity_level"], name)
		require.Equal(t, "cluster", r.Labels["tier"], name)
		require.Equal(t, "system-s3", r.Labels["d8_module"], name)
		require.NotEmpty(t, r.Labels["d8_component"], name)
		require.Equal(t, "1", r.Annotations["plk_protocol_version"], name)
		require.Equal(t, "markdown", r.Annotations["plk_markup_format"], name)
		require.Contains(t, r.Annotations, "plk_create_group_if_not_exists__d8_system_s3_malfunctioning", name)
		require.Contains(t, r.Annotations, "plk_grouped_by__d8_system_s3_malfunctioning", name)
		require.NotEmpty(t, r.Annotations["summary"], name)
		require.Regexp(t, "(?s)^[A-Z].*\n\n1\\. .*```bash\n   d8 (k|s) ", r.Annotations["description"], "%s: what it means, then what to type", name)
		for _, text := range r.Annotations {
			require.NotContains(t, text, "$value", "%s: a text that changes by itself makes a new alert each time", name)
			require.NotRegexp(t, `https?://`, text, "%s: closed clusters reach nothing outside", name)
		}
	}
}
