#!/bin/sh
# Claude Code
set -eu
export ANTHROPIC_BASE_URL="${SLUICE_URL:-http://127.0.0.1:4141}"
export ANTHROPIC_AUTH_TOKEN="${SLUICE_KEY:-any}"
unset ANTHROPIC_API_KEY # otherwise Claude Code prompts for permission to use it
if [ -n "${SLUICE_MODEL:-}" ]; then
  export ANTHROPIC_MODEL="$SLUICE_MODEL" ANTHROPIC_DEFAULT_HAIKU_MODEL="$SLUICE_MODEL"
fi
exec claude "$@"
