#!/usr/bin/env bash
# deploy.sh ENVIRONMENT CMD...: one deploy of an environment at a time, in the order in which they came, on the machine that deploys.
#
#   DEPLOY_WAIT   how long to wait for the one before (30m); then exit status 75: try again later
#   DEPLOY_TTL    a deploy that gives no sign of life for so long is ended, and the next one begins (1m)
#
# CMD has HOLDFAST_LOCK and HOLDFAST_TOKEN. Before the step that cannot be taken back it asks: deploy.sh --still-ours
set -euo pipefail

: "${HOLDFAST:=holdfast}"
command -v "$HOLDFAST" >/dev/null || { echo "deploy: holdfast is not installed (or set HOLDFAST)" >&2; exit 127; }
if [ "${1-}" = --still-ours ]; then
    exec "$HOLDFAST" lock check "${HOLDFAST_LOCK:?not inside of a deploy}" --token "${HOLDFAST_TOKEN:?}"
fi
[ $# -ge 2 ] || { sed -n '2,/^#$/s/^# \{0,1\}//p' "$0" >&2; exit 2; }
environment=$1
shift
exec "$HOLDFAST" lock run "deploy-$environment" -w "${DEPLOY_WAIT:-30m}" --ttl "${DEPLOY_TTL:-1m}" -E 75 -- "$@"
