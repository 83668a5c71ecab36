#!/usr/bin/env bash
# ralph.sh [-n RUNS] [-d EACH] [-i IDLE] -u TESTS PROMPT [-- AGENT...]: an agent gets the same prompt again until the tests pass.
#
#   -u TESTS   the command that decides, run by sh -c: make test
#   -n RUNS    at most so many runs (20)    -d EACH   each ends after this (1h)    -i IDLE   or when it is silent for so long (15m)
#   PROMPT     a file; it becomes the agent's standard input
#   AGENT      claude -p --dangerously-skip-permissions, unless another command is given
#
# Exit status: 0 the tests pass; 1 they do not after RUNS, or a loop is at work in this directory; else that of `holdfast run`.
set -euo pipefail

: "${HOLDFAST:=holdfast}"
usage() { sed -n '2,/^#$/s/^# \{0,1\}//p' "$0" >&2; exit 2; }

runs=20 each=1h idle=15m tests=''
while getopts n:d:i:u: option; do
    case $option in
    n) runs=$OPTARG ;;
    d) each=$OPTARG ;;
    i) idle=$OPTARG ;;
    u) tests=$OPTARG ;;
    *) usage ;;
    esac
done
shift $((OPTIND - 1))
if [ -z "$tests" ] || [ $# -lt 1 ]; then usage; fi
prompt=$1
shift
[ "${1-}" != -- ] || shift
[ $# -gt 0 ] || set -- claude -p --dangerously-skip-permissions
[ -r "$prompt" ] || { echo "ralph: $prompt cannot be read" >&2; exit 2; }
command -v "$HOLDFAST" >/dev/null || { echo "ralph: holdfast is not installed (or set HOLDFAST)" >&2; exit 127; }

if sh -c "$tests" >/dev/null 2>&1; then
    echo "ralph: the tests pass already" >&2
    exit 0
fi
# One loop in one directory, however its path is spelt.
name=ralph-$("$HOLDFAST" name sanitize -- "$(basename "$PWD" | cut -c 1-40)")-$(stat -c %d:%i . | cksum | cut -d ' ' -f 1)
export RALPH_PROMPT=$prompt
# shellcheck disable=SC2016  # the inner shell expands it
exec "$HOLDFAST" run "$name" --log --max-runs "$runs" --until "$tests" --deadline "$each" --idle "$idle" --env RALPH_PROMPT \
    -- sh -c 'exec "$@" <"$RALPH_PROMPT"' ralph "$@"
