{{/* The name of everything: the release, with the name of the chart unless it has it. */}}
{{- define "sluice.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 63 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 63 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "sluice.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{- define "sluice.image" -}}
{{- $repository := required "image.repository: required, the image that you have built and pushed" .Values.image.repository }}
{{- if .Values.image.digest }}{{ printf "%s@%s" $repository .Values.image.digest }}{{ else }}{{ printf "%s:%s" $repository (required "image.tag: required without image.digest" .Values.image.tag) }}{{ end }}
{{- end }}

{{/* Entries of a map whose values must be text. */}}
{{- define "sluice.texts" -}}
{{- $lines := list }}
{{- range $name, $value := . }}{{ $lines = append $lines (printf "%s: %s" (quote $name) ($value | toString | quote)) }}{{ end }}
{{- join "\n" $lines }}
{{- end }}

{{/* The configuration. One gateway with a volume has its keys, usage and limits there. */}}
{{- define "sluice.config" -}}
{{- $config := deepCopy .Values.config }}
{{- if .Values.persistence.enabled }}
{{- $config = omit $config "store" "limits_store" }}
{{- $auth := omit (default dict $config.auth) "pepper_file" }}
{{- $config = omit $config "auth" }}
{{- if $auth }}{{ $_ := set $config "auth" $auth }}{{ end }}
{{- else if $config.limits_store }}
{{- $_ := set $config "limits_store" (merge $config.limits_store (dict "expected_nodes" .Values.replicas)) }}
{{- end }}
{{- toYaml $config }}
{{- end }}

{{/* What cannot be said by the schema. */}}
{{- define "sluice.check" -}}
{{- if .Values.persistence.enabled }}
{{- if ne (int .Values.replicas) 1 }}{{ fail "replicas: must be 1 with persistence.enabled, because SQLite has one writer; disable persistence to use PostgreSQL" }}{{ end }}
{{- else }}
{{- if not .Values.config.store }}{{ fail "config.store: required without persistence.enabled, or keys and usage would be lost with the pod" }}{{ end }}
{{- if and (gt (int .Values.replicas) 1) (not .Values.config.limits_store) }}{{ fail "config.limits_store: required with more than one replica, or each would admit the whole of every limit" }}{{ end }}
{{- end }}
{{- if .Values.secrets.create }}
{{- $needed := list "admin-key" }}
{{- if not .Values.persistence.enabled }}{{ $needed = list "admin-key" "limits-store" "pepper" "store" }}{{ end }}
{{- range $name := $needed }}
{{- if not (get $.Values.secrets.values $name) }}{{ fail (printf "secrets.values.%s: required with secrets.create" $name) }}{{ end }}
{{- end }}
{{- end }}
{{- if .Values.ingress.enabled }}
{{- if not .Values.ingress.hosts }}{{ fail "ingress.hosts: name at least one host with ingress.enabled" }}{{ end }}
{{- if not .Values.config.trusted_proxies }}{{ fail "config.trusted_proxies: name where the ingress controller connects from, or all clients would have its address" }}{{ end }}
{{- end }}
{{- end }}
