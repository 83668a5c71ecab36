# tests/cli/session_helper.bash - what the tests of sessions load: helper.bash, and sessions that end with their test.
load "${BASH_SOURCE[0]%/*}/helper"

eval "$(declare -f teardown | sed '1s/teardown/end_spawned/')"

teardown() {
    local name
    if [ -d "$HOLDFAST_DIR/sessions" ]; then
        while IFS= read -r name; do
            hf -q stop "$name" --grace 0 >/dev/null 2>&1 || true
        done < <(hf -q ps --json 2>/dev/null | jq -r '.sessions[].name')
    fi
    end_spawned
}

until_go='echo $$ >"up-$0"; until [ -e "go-$0" ]; do sleep 0.02; done; exit "$(cat "go-$0")"'

# running NAME [OPTIONS...]: a session that ends when the file go-NAME appears, with the status in it; its supervisor is $spawned_pid
running() {
    local name=$1
    shift
    spawn "$HOLDFAST" run "$name" "$@" -- bash -c "$until_go" "$name"
    wait_until 10 test -s "up-$name"
}

# let_go NAME [STATUS]: ends it
let_go() {
    echo "${2:-0}" >"go-$1.new"
    mv "go-$1.new" "go-$1"
}

# field NAME JQ-EXPRESSION: of the session, as ps --json shows it
field() { hf -q ps "$1" --json | jq -r ".sessions[0] | $2"; }

is_field() { [ "$(field "$1" "$2")" = "$3" ]; }

# events EVENT [NAME]: how many of them there are
events() { hf -q journal query --event "$1" ${2:+--name "$2"} --json | jq -s length; }

# A zombie is dead; its parent may reap it later.
is_dead() { ! grep -qsE '^State:[[:space:]]+[^ZX[:space:]]' "/proc/$1/status" 2>/dev/null; }

# milliseconds of the clock
now_ms() { echo $(($(date +%s%N) / 1000000)); }

# skip_sanitizers WHY: where the binary under test was built with one
skip_sanitizers() { ! grep -qaE '__asan_init|__tsan_init' "$HOLDFAST" || skip "$1"; }

is_stopped() { grep -qsE '^State:[[:space:]]+[TZX]' "/proc/$1/status" || is_dead "$1"; }

# kill_keepers NAME: supervisor and keeper, so that neither can act on the other's death. When the supervisor dies first, the
# kernel continues a stopped keeper, whose process group has lost its last tie to the session.
kill_keepers() {
    local supervisor keeper
    supervisor=$(field "$1" .supervisor.pid) keeper=$(field "$1" .keeper.pid)
    kill -STOP "$supervisor" "$keeper"
    wait_until 5 is_stopped "$supervisor"
    wait_until 5 is_stopped "$keeper"
    kill -KILL "$keeper"
    kill -KILL "$supervisor"
}

# told NAME N: waits until so many notices of it were told; the notify command outlives the run
has_told() { [ "$(events session_notified "$1")" -eq "$2" ]; }
told() { wait_until 20 has_told "$1" "$2"; }
