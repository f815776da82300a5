#!/bin/sh
# opencode
set -eu
url="${SLUICE_URL:-http://127.0.0.1:4141}/v1" key="${SLUICE_KEY:-any}" model="${SLUICE_MODEL:-demo/hello}"
OPENCODE_CONFIG_CONTENT=$(
  cat <<JSON
{ "model": "sluice/$model", "small_model": "sluice/$model",
  "provider": { "sluice": { "npm": "@ai-sdk/openai-compatible", "name": "Sluice",
    "options": { "baseURL": "$url", "apiKey": "$key" },
    "models": { "$model": { "name": "$model", "tool_call": true } } } } }
JSON
)
export OPENCODE_CONFIG_CONTENT
exec opencode "$@"
