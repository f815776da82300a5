#!/bin/sh
# Gemini CLI. Headless, it also needs {"security":{"auth":{"selectedType":"gemini-api-key"}}} in ~/.gemini/settings.json.
set -eu
export GOOGLE_GEMINI_BASE_URL="${SLUICE_URL:-http://127.0.0.1:4141}"
export GEMINI_API_KEY="${SLUICE_KEY:-any}"
unset GOOGLE_API_KEY GOOGLE_GENAI_USE_VERTEXAI GOOGLE_GENAI_USE_GCA
exec gemini ${SLUICE_MODEL:+-m "$SLUICE_MODEL"} "$@"
