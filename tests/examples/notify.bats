# examples/notify: each recipe against a stand-in: a listener for ntfy and Slack, programs of that name for sendmail and notify-send.
load helper

events() { hf -q journal query --event "$1" --json | jq -s length; }
has_told() { [ "$(events session_notified)" -eq "$1" ]; }

# Answers one request on a port of its own with 200, and writes it to `request`.
LISTENER='
import http.server
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        open("request", "w").write("%s\n%s\n%s\n" % (self.path, self.headers, body.decode()))
        self.send_response(200)
        self.end_headers()
server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
open("port.new", "w").write(str(server.server_port))
import os
os.rename("port.new", "port")
server.handle_request()
'

# listens FILE LINES...: the stand-in is up, and FILE.curl has its address
listens() {
    spawn /usr/bin/python3 -c "$LISTENER"
    wait_until $BOUND test -s port
    export HOLDFAST_NOTIFY_DIR=$PWD/config no_proxy=127.0.0.1
    (umask 077; mkdir -p config; printf 'url = "http://127.0.0.1:%s/secret"\n%s\n' "$(cat port)" "${2-}" >"config/$1.curl")
}

# stand_in NAME: a program that writes its arguments and its input down
stand_in() {
    mkdir -p bin
    printf '#!/bin/sh\nprintf "%%s\\n" "$@" >"%s/arguments"\n[ -t 0 ] || cat >"%s/input"\n' "$PWD" "$PWD" >"bin/$1"
    chmod +x "bin/$1"
    PATH=$PWD/bin:$PATH
}

# The command of the run has what each of them must escape.
fails() { expect 3 hf run 'night ü' --notify "$1" -- sh -c 'exit 3 # <b>&'; }
well_told() {
    wait_until $BOUND has_told 1
    hf -q journal query --event session_notified --json
    hf -q journal query --event session_notified --json | jq -e '.status == 0'
}

@test "notify: ntfy gets title, priority and text; its address and token are in no argument" {
    command -v curl >/dev/null || skip "no curl"
    listens ntfy 'header = "Authorization: Bearer tk_1"'
    fails "$EXAMPLES/notify/ntfy.sh"
    well_told
    cat request
    grep -qi '^/secret$' request
    grep -qi '^Authorization: Bearer tk_1' request
    grep -qi '^Priority: high' request
    [ "$(sed -n 's/^Title: =?UTF-8?B?\(.*\)?=\r*$/\1/p' request | base64 -d)" = "holdfast: night ü failed" ]
    grep -q '^exit 3$' request
    ! grep -E 'secret|tk_1' "$EXAMPLES/notify/ntfy.sh"
}

@test "notify: Slack gets one message, with its own characters escaped" {
    command -v curl >/dev/null || skip "no curl"
    listens slack
    fails "$EXAMPLES/notify/slack.sh"
    well_told
    tail -n 1 request | jq -e '.text == ":rotating_light: *holdfast: night ü failed*\nexit 3\nsh -c '"'"'exit 3 # &lt;b&gt;&amp;'"'"'"'
}

@test "notify: a file that others can read, or none, is refused, and the event says what to do" {
    listens slack
    chmod 644 config/slack.curl
    fails "$EXAMPLES/notify/slack.sh"
    wait_until $BOUND has_told 1
    hf -q journal query --event session_notified --json | jq -e '.status == 78 and (.said | contains("chmod 600"))'
    [ ! -e request ]
}

@test "notify: a mail has its headers and the notice, whatever the session is called" {
    stand_in sendmail
    expect 0 hf run $'x\nBcc: all@example.org' --notify "$EXAMPLES/notify/mail.sh dev@example.org" --notify-on start -- true
    wait_until $BOUND has_told 1
    cat input
    [ "$(cat arguments)" = $'-i\n-t' ]
    [ "$(sed '/^$/q' input | grep -cE '^(To: dev@example.org|Subject: =|Bcc)')" = 2 ]
    [ "$(sed -n 's/^Subject: =?UTF-8?B?\(.*\)?=$/\1/p' input | base64 -d)" = "holdfast: x Bcc: all@example.org started" ]
    tail -n 1 input | jq -e '.event == "start"'
}

@test "notify: the desktop gets it without a session bus in the environment" {
    stand_in notify-send
    unset DBUS_SESSION_BUS_ADDRESS
    sed -i '2iprintf "%s" "$DBUS_SESSION_BUS_ADDRESS" >'"$PWD/bus" bin/notify-send
    fails "$EXAMPLES/notify/desktop.sh"
    well_told
    [ "$(cat bus)" = "unix:path=/run/user/$(id -u)/bus" ]
    grep -qx -e '--urgency=critical' arguments
    grep -qx "holdfast: night ü failed" arguments
    grep -q '&lt;b&gt;&amp;' arguments
}
