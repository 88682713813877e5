{{- /* facts: how the plane was made and what it does, as annotations; the hooks read it back ever after. */ -}}
{{- define "system-s3.facts" -}}
system-s3.deckhouse.io/storage-class: {{ .storageClass | quote }}
system-s3.deckhouse.io/replicas: {{ int .replicas | quote }}
system-s3.deckhouse.io/replication-factor: {{ int .replicationFactor | quote }}
system-s3.deckhouse.io/epoch: {{ int .epoch | quote }}
system-s3.deckhouse.io/survivor: {{ int .survivor | quote }}
system-s3.deckhouse.io/role: {{ .role | quote }}
{{- end -}}
