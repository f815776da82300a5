#!/bin/sh
# pi. It reads its providers from a file: this one replaces ~/.pi/agent for the run.
set -eu
url="${SLUICE_URL:-http://127.0.0.1:4141}/v1" key="${SLUICE_KEY:-any}" model="${SLUICE_MODEL:-demo/hello}"
PI_CODING_AGENT_DIR=$(mktemp -d)
export PI_CODING_AGENT_DIR
trap 'rm -rf "$PI_CODING_AGENT_DIR"' EXIT
cat >"$PI_CODING_AGENT_DIR/models.json" <<JSON
{ "providers": { "sluice": { "baseUrl": "$url", "api": "openai-completions", "apiKey": "$key",
  "models": [{ "id": "$model", "name": "$model", "reasoning": false, "input": ["text", "image"] }] } } }
JSON
pi --provider sluice --model "$model" "$@"
