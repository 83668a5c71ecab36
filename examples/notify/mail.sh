#!/bin/sh
# shellcheck disable=SC1091,SC2154  # words.sh sets them
# mail.sh [ADDRESS] - a notice by mail, through the machine's sendmail (Postfix, msmtp, ssmtp, ...). For: holdfast run --notify
set -eu
. "$(dirname "$0")/words.sh"
to=${1:-$(id -un)}
PATH=$PATH:/usr/sbin:/usr/lib
{
    printf 'To: %s\nSubject: =?UTF-8?B?%s?=\n' "$to" "$(printf '%s' "$title" | base64 -w 0)"
    printf 'MIME-Version: 1.0\nContent-Type: text/plain; charset=UTF-8\nAuto-Submitted: auto-generated\n\n'
    printf '%s\n\n%s\n' "$text" "$notice"
} | sendmail -i -t
