{{- /* page-published: not empty when the status page has an address outside of the cluster: there is a domain, people can
       be asked who they are, and what they answer does not travel in the clear. */ -}}
{{- define "system-s3.page-published" -}}
{{- $modules := .Values.global.modules | default dict -}}
{{- if and $modules.publicDomainTemplate (has "user-authn" (.Values.global.enabledModules | default list)) -}}
{{- if ne (include "system-s3.https-mode" .) "Disabled" -}}
true
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* https-mode: CertManager, CustomCertificate, OnlyInURI or Disabled, as the platform is set. */ -}}
{{- define "system-s3.https-mode" -}}
{{- dig "https" "mode" "Disabled" (.Values.global.modules | default dict) -}}
{{- end -}}

{{- /* page-host: the address of the status page. */ -}}
{{- define "system-s3.page-host" -}}
{{- printf .Values.global.modules.publicDomainTemplate "system-s3" -}}
{{- end -}}

{{- /* page-secret: the certificate for that address; empty where TLS ends before the ingress controller. */ -}}
{{- define "system-s3.page-secret" -}}
{{- $mode := include "system-s3.https-mode" . -}}
{{- if eq $mode "CertManager" -}}
ingress-tls
{{- else if eq $mode "CustomCertificate" -}}
ingress-tls-customcertificate
{{- end -}}
{{- end -}}

{{- /* ingress-class: that of the platform. */ -}}
{{- define "system-s3.ingress-class" -}}
{{- dig "ingressClass" "nginx" (.Values.global.modules | default dict) -}}
{{- end -}}
