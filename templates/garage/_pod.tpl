{{- /* garage-placement: nodes of the tier, each for one replica of the plane. */ -}}
{{- define "system-s3.garage-placement" -}}
affinity:
  nodeAffinity:
    requiredDuringSchedulingIgnoredDuringExecution:
      nodeSelectorTerms:
        - matchExpressions:
            - key: {{ .nodeLabel }}
              operator: Exists
  podAntiAffinity:
    requiredDuringSchedulingIgnoredDuringExecution:
      - topologyKey: kubernetes.io/hostname
        labelSelector:
          matchLabels:
            app: garage
            system-s3.deckhouse.io/plane: {{ .id | quote }}
tolerations:
  {{- toYaml .tolerations | nindent 2 }}
{{- end -}}

{{- /* garage-prepare (list . $plane): readies the volume before Garage starts. */ -}}
{{- define "system-s3.garage-prepare" -}}
{{- $root := index . 0 -}}
{{- $plane := index . 1 -}}
- name: prepare
  image: {{ include "system-s3.image" (list $root "gateway") }}
  command: [/gateway, prepare]
  env:
    {{- include "system-s3.field-env" (list "POD_NAME" "metadata.name") | nindent 4 }}
    - name: PLANE
      value: {{ $plane.id | quote }}
    - name: EPOCH
      value: {{ int $plane.epoch | quote }}
  securityContext:
    {{- include "system-s3.container-security" $root | nindent 4 }}
  resources:
    {{- include "system-s3.requests" (list "20m" "32Mi") | nindent 4 }}
  volumeMounts:
    - name: data
      mountPath: /var/lib/garage
    - name: run
      mountPath: /run/garage
    - name: plane
      mountPath: /etc/system-s3/plane
      readOnly: true
    - name: config
      mountPath: /etc/garage
      readOnly: true
{{- end -}}

{{- /* garage-container: upstream Garage. It has no probes: the gateway's readiness asks it, and a restart would help nothing. */ -}}
{{- define "system-s3.garage-container" -}}
- name: garage
  image: {{ include "system-s3.image" (list . "garage") }}
  command: [/garage, -c, /run/garage/garage.toml, server]
  env:
    - name: RUST_LOG
      value: netapp=warn,garage=info,garage_api_common=warn
    - name: NO_COLOR
      value: "1"
  lifecycle:
    # Garage and its gateway get the signal to stop together, and Garage cuts connections after 10 s. Here it waits
    # until the gateway has finished the requests that run.
    preStop:
      httpGet:
        scheme: HTTPS
        port: 8444
        path: /gateway/v1/drained
  ports:
    - name: rpc
      containerPort: 3901
      protocol: TCP
  securityContext:
    {{- include "system-s3.container-security" . | nindent 4 }}
  resources:
    {{- include "system-s3.requests" (list "100m" "256Mi") | nindent 4 }}
  volumeMounts:
    - name: data
      mountPath: /var/lib/garage
    - name: run
      mountPath: /run/garage
{{- end -}}

{{- /* garage-gateway (list . $plane): the only way in. */ -}}
{{- define "system-s3.garage-gateway" -}}
{{- $root := index . 0 -}}
{{- $plane := index . 1 -}}
- name: gateway
  image: {{ include "system-s3.image" (list $root "gateway") }}
  command: [/gateway, serve]
  env:
    {{- include "system-s3.field-env" (list "POD_NAME" "metadata.name") | nindent 4 }}
    - name: EPOCH
      value: {{ int $plane.epoch | quote }}
    # Ordinals of the replicas that have a role.
    - name: MEMBERS
      value: {{ join "," $plane.members | quote }}
    - name: VOLUME
      value: /var/lib/garage
    - name: CLUSTER_DOMAIN
      value: {{ include "system-s3.cluster-domain" $root | quote }}
    - name: LOG_LEVEL
      value: {{ $root.Values.systemS3.logLevel | lower | quote }}
  ports:
    - name: https-s3
      containerPort: 8443
      protocol: TCP
    - name: https-admin
      containerPort: 8444
      protocol: TCP
    - name: https-metrics
      containerPort: 8445
      protocol: TCP
  livenessProbe:
    httpGet:
      scheme: HTTPS
      port: https-admin
      path: /livez
    periodSeconds: 10
    timeoutSeconds: 5
    failureThreshold: 6
  readinessProbe:
    httpGet:
      scheme: HTTPS
      port: https-admin
      path: /readyz
    periodSeconds: 5
    timeoutSeconds: 5
    failureThreshold: 2
  securityContext:
    {{- include "system-s3.container-security" $root | nindent 4 }}
  resources:
    {{- include "system-s3.requests" (list "20m" "32Mi") | nindent 4 }}
  volumeMounts:
    - name: data
      mountPath: /var/lib/garage
    - name: plane
      mountPath: /etc/system-s3/plane
      readOnly: true
    - name: key-ring
      mountPath: /etc/system-s3/key-ring
      readOnly: true
    - name: tls
      mountPath: /etc/system-s3/tls
      readOnly: true
{{- end -}}

{{- /* garage-volumes: everything but the claim. Secrets are readable by the group of the Pod. */ -}}
{{- define "system-s3.garage-volumes" -}}
- name: run
  emptyDir:
    medium: Memory
    sizeLimit: 1Mi
- name: config
  configMap:
    name: garage-{{ .id }}
- name: plane
  secret:
    secretName: garage-{{ .id }}
    defaultMode: 288 # 0440
- name: key-ring
  secret:
    secretName: key-ring
    defaultMode: 288 # 0440
- name: tls
  secret:
    secretName: tls
    defaultMode: 288 # 0440
{{- end -}}
