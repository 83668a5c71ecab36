#!/bin/sh
# shellcheck disable=SC1091,SC2154  # words.sh sets them
# desktop.sh - a notice on the desktop of this user, also from cron, which does not know of it. For: holdfast run --notify
set -eu
. "$(dirname "$0")/words.sh"
: "${DBUS_SESSION_BUS_ADDRESS:=unix:path=/run/user/$(id -u)/bus}"
export DBUS_SESSION_BUS_ADDRESS
if [ "$good" = 1 ]; then urgency=normal; else urgency=critical; fi
# The body is read as markup.
notify-send --app-name=holdfast --urgency="$urgency" "$title" "$(printf '%s' "$text" | sed 's/&/\&amp;/g; s/</\&lt;/g; s/>/\&gt;/g')"
