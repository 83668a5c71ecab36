#!/bin/sh
# shellcheck disable=SC1091,SC2154  # words.sh sets them
# ntfy.sh - a notice to a phone by ntfy (https://ntfy.sh, or your own server). For: holdfast run --notify
set -eu
. "$(dirname "$0")/words.sh"
curl_file ntfy
if [ "$good" = 1 ]; then priority=default tags=white_check_mark; else priority=high tags=rotating_light; fi
# The body comes by standard input; the title goes as ntfy wants it where it is not ASCII: encoded.
printf '%s' "$text" | curl -fsS --max-time 20 -o /dev/null -K "$file" \
    -H "Title: =?UTF-8?B?$(printf '%s' "$title" | base64 -w 0)?=" -H "Priority: $priority" -H "Tags: $tags" --data-binary @-
