#!/bin/sh
# The same question in all four protocols, each as a stream.
set -eu
URL=${SLUICE_URL:-http://127.0.0.1:4141} KEY=${SLUICE_KEY:-any} MODEL=${SLUICE_MODEL:-demo/hello}

ask() { # path, body
  echo "# $1"
  curl -sSN --fail-with-body "$URL$1" -H "authorization: Bearer $KEY" -H 'content-type: application/json' -d "$2"
}

ask /v1/chat/completions "{\"model\":\"$MODEL\",\"stream\":true,\"messages\":[{\"role\":\"user\",\"content\":\"Hello\"}]}"
ask /v1/messages "{\"model\":\"$MODEL\",\"stream\":true,\"max_tokens\":500,\"messages\":[{\"role\":\"user\",\"content\":\"Hello\"}]}"
ask /v1/responses "{\"model\":\"$MODEL\",\"stream\":true,\"input\":\"Hello\"}"
ask "/v1beta/models/$MODEL:streamGenerateContent?alt=sse" '{"contents":[{"role":"user","parts":[{"text":"Hello"}]}]}'
