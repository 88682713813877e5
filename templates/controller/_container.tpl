{{- /* controller-container: drives Garage, reports state and answers STS. */ -}}
{{- define "system-s3.controller-container" -}}
- name: controller
  image: {{ include "system-s3.image" (list . "controller") }}
  command: [/controller]
  env:
    {{- include "system-s3.field-env" (list "POD_NAME" "metadata.name") | nindent 4 }}
    {{- include "system-s3.field-env" (list "POD_NAMESPACE" "metadata.namespace") | nindent 4 }}
    {{- include "system-s3.field-env" (list "POD_IP" "status.podIP") | nindent 4 }}
    - name: CLUSTER_DOMAIN
      value: {{ include "system-s3.cluster-domain" . | quote }}
    - name: KEY_LIFETIME_SECONDS
      value: {{ int .Values.systemS3.internal.keyLifetimeSeconds | quote }}
    - name: LOG_LEVEL
      value: {{ .Values.systemS3.logLevel | lower | quote }}
  ports:
    - name: https-sts
      containerPort: 8443
      protocol: TCP
    - name: https-page
      containerPort: 8446
      protocol: TCP
    - name: probes
      containerPort: 8081
      protocol: TCP
    - name: https-metrics
      containerPort: 8445
      protocol: TCP
  livenessProbe:
    httpGet:
      port: probes
      path: /healthz
    periodSeconds: 10
    timeoutSeconds: 5
    failureThreshold: 6
  readinessProbe:
    httpGet:
      port: probes
      path: /readyz
    periodSeconds: 5
    timeoutSeconds: 5
    failureThreshold: 2
  securityContext:
    {{- include "system-s3.container-security" . | nindent 4 }}
  resources:
    {{- include "system-s3.requests" (list "50m" "64Mi") | nindent 4 }}
  volumeMounts:
    - name: key-ring
      mountPath: /etc/system-s3/key-ring
      readOnly: true
    - name: tls
      mountPath: /etc/system-s3/tls
      readOnly: true
{{- end -}}
