{{- /* garage-toml (list . $plane): the configuration of a plane's nodes. */ -}}
{{- define "system-s3.garage-toml" -}}
{{- $root := index . 0 -}}
{{- $plane := index . 1 -}}
{{- $secrets := required (printf "systemS3.internal.planes.%s is absent" $plane.id) (index $root.Values.systemS3.internal.planes $plane.id) -}}
{{- $object := printf "garage-%s" $plane.id -}}
metadata_dir = "/var/lib/garage/meta"
data_dir = "/var/lib/garage/data"

# A power cut must not take what was acknowledged; with one copy that includes the blocks.
db_engine = "lmdb"
metadata_fsync = true
data_fsync = {{ eq (int $plane.replicationFactor) 1 }}

replication_factor = {{ int $plane.replicationFactor }}
consistency_mode = "consistent"
block_size = "1M"
compression_level = 1

rpc_bind_addr = "0.0.0.0:3901"
rpc_secret_file = "/run/garage/rpc_secret"
# Blocks that lack copies are copied 2 x this time after they were found.
rpc_timeout_msec = {{ int $root.Values.systemS3.internal.rpcTimeoutMsec }}
bootstrap_peers = [
{{- /* All that there may ever be: more replicas must not mean another configuration for those that run. */}}
{{- range $ordinal, $id := $secrets.nodeIDs }}
  {{ printf "%s@%s-%d.%s.d8-system-s3.svc.%s:3901" $id $object $ordinal $object (include "system-s3.cluster-domain" $root) | quote }},
{{- end }}
]

# The gateway beside is the only way to the two below.
[s3_api]
api_bind_addr = "127.0.0.1:3900"
s3_region = "us-east-1"

[admin]
api_bind_addr = "127.0.0.1:3903"
admin_token_file = "/run/garage/admin_token"
metrics_token_file = "/run/garage/metrics_token"
metrics_require_token = true
{{ end -}}
