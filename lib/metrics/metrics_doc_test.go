package metrics

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the page of metrics anew")

// page is what the documentation says in one language around the names.
type page struct {
	file, front, head, end string
	help                   func(Metric) string
	sources                map[Source]string
}

func pages() []page {
	return []page{
		{
			file: "../../docs/METRICS.md", front: front, end: end,
			head: "| metric | type | labels | who tells it | what it says |",
			help: func(m Metric) string { return m.Help },
			sources: map[Source]string{
				Gateway: "gateways", Controller: "controller", Leader: "controller, the leader",
			},
		},
		{
			file: "../../docs/METRICS.ru.md", front: frontRussian, end: endRussian,
			head: "| метрика | тип | метки | кто сообщает | что она значит |",
			help: func(m Metric) string { return russian[m.Name] },
			sources: map[Source]string{
				Gateway: "шлюзы", Controller: "контроллер", Leader: "контроллер-лидер",
			},
		},
	}
}

func (p page) table() string {
	var out strings.Builder
	out.WriteString(p.head + "\n|---|---|---|---|---|\n")
	for _, m := range All() {
		var labels, sources []string
		for _, label := range m.Labels {
			labels = append(labels, "`"+label+"`")
		}
		for _, source := range m.Sources {
			sources = append(sources, p.sources[source])
		}
		fmt.Fprintf(&out, "| `%s` | %s | %s | %s | %s |\n", m.Name, m.Kind, strings.Join(labels, ", "), strings.Join(sources, ", "), p.help(m))
	}
	return out.String()
}

func TestThePageOfMetricsIsTrue(t *testing.T) {
	for _, p := range pages() {
		text := p.front + p.table() + p.end
		if *update {
			require.NoError(t, os.WriteFile(p.file, []byte(text), 0o644))
		}
		written, err := os.ReadFile(p.file)
		require.NoError(t, err)
		require.Equal(t, text, string(written), "%s is stale: go test ./lib/metrics -update", p.file)
	}
}

func TestMetricsAreDeclaredOnceAndExplained(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range All() {
		require.False(t, seen[m.Name], m.Name)
		seen[m.Name] = true
		require.True(t, strings.HasPrefix(m.Name, "system_s3_"), m.Name)
		require.Equal(t, m.Kind == Counter, strings.HasSuffix(m.Name, "_total"), m.Name)
		require.Equal(t, m.Kind == Histogram, len(m.Buckets) > 0, m.Name)
		require.True(t, strings.HasSuffix(m.Help, "."), m.Name)
		require.NotEmpty(t, m.Sources, m.Name)
		require.NotEmpty(t, russian[m.Name], "explain %s in Russian", m.Name)
	}
	require.Len(t, russian, len(seen))
}

const front = `---
title: "Metrics"
description: "What the module tells Prometheus, and who may read it."
---

The table is made from the code.

`

const end = `
## Labels

No label grows without bound.

| label | values |
|---|---|
| ` + "`operation`" + ` | ` + "`read`, `list`, `write`, `delete`, `sts`, `other`" + `; the last is what was refused before anybody could tell |
| ` + "`code`" + ` | ` + "`OK`, `ClientGone`" + ` (the client left before the end), or the S3 or STS error, see [S3 operations](OPERATIONS.md); ` + "`Other`" + ` is an error without a known name |
| ` + "`reason`" + ` of ` + "`system_s3_keys_refused_total`" + ` | the S3 error, or for ` + "`AccessDenied`: `Unsigned`, `OtherBucket`, `NotPermitted`, `Revoked`" + ` |
| ` + "`bucket`" + ` | the bucket's name in S3; empty when no key for it was proven. A gateway forgets a bucket a day after its last request |
| ` + "`pod`, `plane`" + ` | of a gateway: added when it is scraped |

The gateways know buckets by their names in S3. Namespace and name of the SystemBucket come from ` + "`system_s3_bucket_info`" + `:

` + "```" + `promql
sum by (namespace, name) (
  sum by (bucket) (rate(system_s3_requests_total{bucket!=""}[5m]))
  * on (bucket) group_left (namespace, name) system_s3_bucket_info
)
` + "```" + `

## Who may read them

Both endpoints are ` + "`/metrics`" + ` on port 8445, with TLS and a certificate of the module's own CA; NetworkPolicies let in the
namespace ` + "`d8-monitoring`" + ` only.

- **The controller** asks Kubernetes whose token it was given and whether RBAC grants it ` + "`get` on `deployments/prometheus-metrics`" + `
  of ` + "`controller`" + ` in ` + "`d8-system-s3`" + `, as the platform's own proxies do. Role ` + "`access-to-system-s3`" + ` grants it to Prometheus.
- **A gateway** has no access to Kubernetes, so it cannot ask. It knows the plane's metrics token, which is in Secret
  ` + "`garage-<plane>-metrics`" + ` for prometheus-operator. The token opens the metrics and nothing else.

## What is left out

Metrics of Go programs (` + "`go_*`, `process_*`" + `) and of controller-runtime (` + "`controller_runtime_*`, `workqueue_*`, `rest_client_*`" + `) are told as
well; they describe the programs, not the store, and may change with their libraries.
`

const frontRussian = `---
title: "Метрики"
description: "Что модуль сообщает Prometheus и кто может это прочитать."
---

Таблица построена по коду.

`

const endRussian = `
## Метки

Ни одна метка не растёт без предела.

| метка | значения |
|---|---|
| ` + "`operation`" + ` | ` + "`read`, `list`, `write`, `delete`, `sts`, `other`" + `; последнее — то, в чём было отказано раньше, чем стало ясно, что это |
| ` + "`code`" + ` | ` + "`OK`, `ClientGone`" + ` (клиент ушёл, не дождавшись конца) или ошибка S3 либо STS, см. [операции S3](OPERATIONS.ru.md); ` + "`Other`" + ` — ошибка без известного имени |
| ` + "`reason`" + ` у ` + "`system_s3_keys_refused_total`" + ` | ошибка S3, а для ` + "`AccessDenied`: `Unsigned`, `OtherBucket`, `NotPermitted`, `Revoked`" + ` |
| ` + "`bucket`" + ` | имя бакета в S3; пустое, если ключ к нему не доказан. Шлюз забывает бакет через сутки после последнего запроса |
| ` + "`pod`, `plane`" + ` | шлюза: добавляются при сборе |

Шлюзы знают бакеты по их именам в S3. Пространство имён и имя SystemBucket даёт ` + "`system_s3_bucket_info`" + `:

` + "```" + `promql
sum by (namespace, name) (
  sum by (bucket) (rate(system_s3_requests_total{bucket!=""}[5m]))
  * on (bucket) group_left (namespace, name) system_s3_bucket_info
)
` + "```" + `

## Кто может их прочитать

Обе точки — ` + "`/metrics`" + ` на порту 8445, по TLS и с сертификатом собственного центра сертификации модуля; NetworkPolicy пускают
туда только пространство имён ` + "`d8-monitoring`" + `.

- **Контроллер** спрашивает у Kubernetes, чей токен ему предъявили и даёт ли RBAC право ` + "`get` на `deployments/prometheus-metrics`" + `
  объекта ` + "`controller`" + ` в ` + "`d8-system-s3`" + `, как это делают прокси самой платформы. Prometheus получает его через Role ` + "`access-to-system-s3`" + `.
- **У шлюза** нет доступа к Kubernetes, спросить он не может. Он знает токен метрик своего кластера Garage; для prometheus-operator
  токен лежит в Secret ` + "`garage-<plane>-metrics`" + `. Этот токен открывает только метрики.

## Чего в таблице нет

Сообщаются также метрики программ на Go (` + "`go_*`, `process_*`" + `) и controller-runtime (` + "`controller_runtime_*`, `workqueue_*`, `rest_client_*`" + `): они
описывают программы, а не хранилище, и могут меняться вместе с библиотеками.
`
