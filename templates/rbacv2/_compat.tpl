{{- /* capabilities: not empty when the platform knows roles by their new names, which is 1.78 and what has no version. */ -}}
{{- define "system-s3.capabilities" -}}
{{- $version := .Values.global.deckhouseVersion | default "" | toString -}}
{{- $found := regexFind "^v?[0-9]+[.][0-9]+" $version | trimPrefix "v" -}}
{{- if or (not $found) (semverCompare ">= 1.78.0" (printf "%s.0" $found)) -}}
true
{{- end -}}
{{- end -}}

{{- /* capability-labels (list . "view" "viewer"): what makes a ClusterRole a part of a role of storage administrators. */ -}}
{{- define "system-s3.capability-labels" -}}
{{- $root := index . 0 -}}
{{- $action := index . 1 -}}
{{ include "system-s3.labels" (list $root (dict)) }}
rbac.deckhouse.io/aggregate-to-storage-as: {{ index . 2 }}
rbac.deckhouse.io/namespace: d8-system-s3
{{- if include "system-s3.capabilities" $root }}
rbac.deckhouse.io/kind: capability
rbac.deckhouse.io/scope: system
rbac.deckhouse.io/capability: system-capability.system-s3.{{ $action }}
{{- else }}
rbac.deckhouse.io/kind: manage
rbac.deckhouse.io/level: module
{{- end }}
{{- end -}}

{{- /* capability-name (list . "view") */ -}}
{{- define "system-s3.capability-name" -}}
{{- if include "system-s3.capabilities" (index . 0) -}}
d8:system-capability:system-s3:{{ index . 1 }}
{{- else -}}
d8:manage:permission:module:system-s3:{{ index . 1 }}
{{- end -}}
{{- end -}}
