{{- /* leave-pod: the leaver's Pod. It is the same in the Deployment that sleeps and in the one that works. */ -}}
{{- define "system-s3.leave-pod" -}}
metadata:
  labels:
    {{- include "system-s3.labels" (list . (dict "app" "system-s3-leave")) | nindent 4 }}
spec:
  {{- if gt (int (.Values.global.discovery.clusterMasterCount | default 0)) 0 }}
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms:
          - matchExpressions:
              - key: node-role.kubernetes.io/control-plane
                operator: Exists
  {{- end }}
  tolerations:
    - key: node-role.kubernetes.io/control-plane
      operator: Exists
    - key: node-role.kubernetes.io/master
      operator: Exists
    - key: dedicated.deckhouse.io
      operator: Exists
  priorityClassName: system-cluster-critical
  serviceAccountName: system-s3-leave
  enableServiceLinks: false
  terminationGracePeriodSeconds: 10
  imagePullSecrets:
    - name: system-s3-leave
  securityContext:
    {{- include "system-s3.pod-security" . | nindent 4 }}
  containers:
    - name: leave
      image: {{ include "system-s3.image" (list . "controller") }}
      command: [/controller, leave]
      ports:
        - name: probes
          containerPort: 8081
          protocol: TCP
      livenessProbe:
        httpGet:
          port: probes
          path: /healthz
        periodSeconds: 30
        timeoutSeconds: 5
        failureThreshold: 4
      readinessProbe:
        httpGet:
          port: probes
          path: /healthz
        periodSeconds: 10
        timeoutSeconds: 5
      securityContext:
        {{- include "system-s3.container-security" . | nindent 8 }}
      resources:
        {{- include "system-s3.requests" (list "10m" "32Mi") | nindent 8 }}
{{- end -}}

{{- /* leave-set: the annotations of what must be in place before anything else, and of all that it needs itself. */ -}}
{{- define "system-s3.leave-set" -}}
werf.io/weight: "-10"
{{- end -}}

{{- /* leave-kept: the same, kept when the module is disabled: the leaver works after everything else is gone. */ -}}
{{- define "system-s3.leave-kept" -}}
helm.sh/resource-policy: keep
{{ include "system-s3.leave-set" . }}
{{- end -}}
