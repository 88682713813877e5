{{- /* The helpers below print; what is printed is decided by lib/plan. */ -}}

{{- /* plan: the plan, or no chart at all: a default in its place would take the store away. */ -}}
{{- define "system-s3.plan" -}}
{{- if not .Values.systemS3.internal.plan -}}
{{- fail "systemS3.internal.plan is absent: the hook that makes the plan has not run" -}}
{{- end -}}
{{- toJson .Values.systemS3.internal.plan -}}
{{- end -}}

{{- /* untouched $plane: not empty when what makes the plane is not printed, but kept as it is in the cluster. The controller deletes it when the plane retires. */ -}}
{{- define "system-s3.untouched" -}}
{{- if or .frozen (eq .role "retiring") -}}
true
{{- end -}}
{{- end -}}

{{- /* labels (list . (dict "app" "x")): the labels of every object, and the given ones. */ -}}
{{- define "system-s3.labels" -}}
heritage: deckhouse
module: system-s3
{{- range $key, $value := index . 1 }}
{{ $key }}: {{ $value | quote }}
{{- end }}
{{- end -}}

{{- /* image (list . "controller"): an image of the module by its digest. */ -}}
{{- define "system-s3.image" -}}
{{- $root := index . 0 -}}
{{- $name := index . 1 -}}
{{- $digest := index (($root.Values.global.modulesImages.digests).systemS3 | default dict) $name -}}
{{- if not $digest -}}
{{- fail (printf "the digest of image %s is absent in global.modulesImages.digests.systemS3" $name) -}}
{{- end -}}
{{- $own := ($root.Values.systemS3.registry).base -}}
{{- if $own -}}
{{- printf "%s/system-s3@%s" $own $digest -}}
{{- else -}}
{{- printf "%s@%s" $root.Values.global.modulesImages.registry.base $digest -}}
{{- end -}}
{{- end -}}

{{- /* dockercfg: access to the registry that the module's images are in, base64. */ -}}
{{- define "system-s3.dockercfg" -}}
{{- ((.Values.systemS3.registry).dockercfg) | default .Values.global.modulesImages.registry.dockercfg | default ("{\"auths\":{}}" | b64enc) -}}
{{- end -}}

{{- /* cluster-domain: the DNS domain of the cluster. */ -}}
{{- define "system-s3.cluster-domain" -}}
{{- required "global.discovery.clusterDomain is absent" .Values.global.discovery.clusterDomain -}}
{{- end -}}

{{- /* control-plane-ha: not empty when the control plane is fault-tolerant; the controller follows it, whatever the store does. */ -}}
{{- define "system-s3.control-plane-ha" -}}
{{- if .Values.global.discovery.clusterControlPlaneIsHighlyAvailable -}}
true
{{- end -}}
{{- end -}}

{{- /* vpa: not empty when VerticalPodAutoscalers can be printed. */ -}}
{{- define "system-s3.vpa" -}}
{{- $api := "autoscaling.k8s.io/v1/VerticalPodAutoscaler" -}}
{{- if has "vertical-pod-autoscaler" (.Values.global.enabledModules | default list) -}}
{{- if or (has $api (.Values.global.discovery.apiVersions | default list)) (.Capabilities.APIVersions.Has $api) -}}
true
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* pod-security: the security context of our Pods; volumes belong to the group. */ -}}
{{- define "system-s3.pod-security" -}}
runAsNonRoot: true
runAsUser: 64535
runAsGroup: 64535
fsGroup: 64535
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- /* container-security: the security context of our containers. */ -}}
{{- define "system-s3.container-security" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
capabilities:
  drop: [ALL]
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- /* requests (list "100m" "256Mi"): there are no limits, and logs are all that is written outside of volumes. */ -}}
{{- define "system-s3.requests" -}}
requests:
  cpu: {{ index . 0 }}
  memory: {{ index . 1 }}
  ephemeral-storage: 50Mi
{{- end -}}

{{- /* field-env (list "POD_NAME" "metadata.name"): an environment variable of the Pod's own fields. */ -}}
{{- define "system-s3.field-env" -}}
- name: {{ index . 0 }}
  valueFrom:
    fieldRef:
      apiVersion: v1
      fieldPath: {{ index . 1 }}
{{- end -}}

{{- /* monitoring: not empty when objects of prometheus-operator can be printed. */ -}}
{{- define "system-s3.monitoring" -}}
{{- if has "operator-prometheus" (.Values.global.enabledModules | default list) -}}
true
{{- end -}}
{{- end -}}

{{- /* scrapers: the rule of a NetworkPolicy that lets Prometheus, and nobody else, in to the metrics. */ -}}
{{- define "system-s3.scrapers" -}}
- from:
    - namespaceSelector:
        matchLabels:
          kubernetes.io/metadata.name: d8-monitoring
  ports:
    - protocol: TCP
      port: https-metrics
{{- end -}}
