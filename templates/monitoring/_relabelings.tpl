{{- /* target-relabelings "controller": what a target is called. The labels namespace and container say nothing: there is one of each. */ -}}
{{- define "system-s3.target-relabelings" -}}
- regex: endpoint|namespace|container
  action: labeldrop
- targetLabel: job
  replacement: system-s3-{{ . }}
- targetLabel: tier
  replacement: cluster
{{- end -}}
