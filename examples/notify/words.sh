# shellcheck shell=sh disable=SC2034  # sourced by the recipes: reads the notice from standard input
#
# Sets: title "holdfast: nightly failed", text (one or two lines), event (start or end), outcome, good (1: nothing to worry about).
# Control bytes become blanks: a name or a cause must not add a header to a mail.
notice=$(cat)
field() { printf '%s' "$notice" | jq -r "$1 | tostring | gsub(\"[[:cntrl:]]\"; \" \")"; }
event=$(field .event)
outcome=$(field '.outcome // "started"')
title=$(field '"holdfast: \(.session) \(.outcome // "started")"')
text="$(field '.cause // "attempt \(.attempt)"')
$(field .command)"
case $outcome in started | succeeded) good=1 ;; *) good=0 ;; esac

# curl_file NAME: where its address and its token stand, for curl -K, so that neither is in an argument that `ps` shows to everybody
curl_file() {
    file=${HOLDFAST_NOTIFY_DIR:-${XDG_CONFIG_HOME:-$HOME/.config}/holdfast}/$1.curl
    [ -r "$file" ] || { echo "$file is missing: see README.md beside this script" >&2; exit 78; }
    [ -z "$(find "$file" -perm /077)" ] || { echo "$file can be read by others: chmod 600 $file" >&2; exit 78; }
}
