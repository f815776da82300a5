#!/bin/sh
# Codex
set -eu
export SLUICE_KEY="${SLUICE_KEY:-any}"
url="${SLUICE_URL:-http://127.0.0.1:4141}/v1"
exec codex ${SLUICE_MODEL:+-m "$SLUICE_MODEL"} -c 'model_provider="sluice"' \
  -c "model_providers.sluice={ name = \"Sluice\", base_url = \"$url\", env_key = \"SLUICE_KEY\", wire_api = \"responses\" }" "$@"
