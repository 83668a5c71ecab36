#!/bin/sh
# shellcheck disable=SC1091,SC2154  # words.sh sets them
# slack.sh - a notice to a Slack channel by an incoming webhook. For: holdfast run --notify
set -eu
. "$(dirname "$0")/words.sh"
curl_file slack
if [ "$good" = 1 ]; then sign=:white_check_mark:; else sign=:rotating_light:; fi
# Slack's own characters are escaped: a command must not mention a channel.
jq -nc --arg title "$title" --arg text "$text" --arg sign "$sign" \
    'def plain: gsub("&"; "&amp;") | gsub("<"; "&lt;") | gsub(">"; "&gt;"); {text: "\($sign) *\($title | plain)*\n\($text | plain)"}' |
    curl -fsS --max-time 20 -o /dev/null -K "$file" -H 'Content-Type: application/json' --data-binary @-
