# tests/cli/file_helper.bash - what the tests of shared files load: helper.bash, holders, room in memory.
load "${BASH_SOURCE[0]%/*}/helper"

# holding FILE [ARGS...]: in the background, holds the file's lock until "go" appears; returns when it has it
holding() {
    local file=$1
    shift
    spawn "$HOLDFAST" file with "$file" "$@" -- bash -c 'echo $$ >held; until [ -e go ]; do sleep 0.02; done'
    wait_until 10 test -s held
}

# nothing_left: no temporary file in the current directory
nothing_left() { [ -z "$(find . -name '.*.tmp' -not -path './state/*')" ] || { find . -name '.*.tmp'; return 1; }; }

# The suite's own budget: the large numbers once, as root without sanitizers.
full_run() { [ "$(id -u)" = 0 ] && ! grep -q __asan_init "$HOLDFAST"; }

# in_memory GIB: goes to a directory in memory if there is one with that much room, for what is about order, not about disks
in_memory() {
    [ "$(df --output=avail -BG /dev/shm 2>/dev/null | tail -1 | tr -dc 0-9)" -ge "$1" ] || return 0
    [ "$(awk '/^MemAvailable/ { print int($2 / 1048576) }' /proc/meminfo)" -ge $((2 * $1)) ] || return 0
    memory=$(mktemp -d /dev/shm/holdfast-test-XXXXXX 2>/dev/null) || return 0
    cd "$memory" || return 1
    export HOLDFAST_DIR="$memory/state"
}

teardown() {
    kill_spawned
    [ -z "${memory:-}" ] || rm -rf "$memory"
}
