#!/bin/sh
# Cline. It reads its providers from a file: this one replaces ~/.cline/data for the run.
set -eu
url="${SLUICE_URL:-http://127.0.0.1:4141}/v1" key="${SLUICE_KEY:-any}" model="${SLUICE_MODEL:-demo/hello}"
data=$(mktemp -d)
trap 'rm -rf "$data"' EXIT
mkdir "$data/settings"
cat >"$data/settings/providers.json" <<JSON
{ "version": 1, "lastUsedProvider": "openai-compatible", "modes": {},
  "providers": { "openai-compatible": { "updatedAt": "2026-01-01T00:00:00.000Z", "tokenSource": "manual",
    "settings": { "provider": "openai-compatible", "apiKey": "$key", "model": "$model", "baseUrl": "$url" } } } }
JSON
cline --data-dir "$data" "$@"
