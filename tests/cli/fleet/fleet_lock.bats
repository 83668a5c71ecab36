load ../helper

# One member for all tests of this file, a prefix for each.
setup_file() {
    local said status=0
    export FLEET_DIR=$BATS_FILE_TMPDIR/fleet
    said=$("$BATS_TEST_DIRNAME/../../fleet/cluster" start --owner $$ 1 --loopback --profile conformance 2>&1) || status=$?
    [ "$status" -ne 77 ] || skip "${said##*$'\n'}"
    [ "$status" -eq 0 ] || { echo "$said"; return 1; }
    FLEET_URL=$("$BATS_TEST_DIRNAME/../../fleet/cluster" url)
    export FLEET_URL
}
teardown_file() { [ ! -e "$FLEET_DIR" ] || "$BATS_TEST_DIRNAME/../../fleet/cluster" stop; }

store() { export HOLDFAST_STORE=$FLEET_URL/test-$BATS_TEST_NUMBER${1-}; }

# holding NAME [ARGS...]: in the background, holds NAME until the file "go-NAME" appears
holding() {
    local name=$1
    shift
    spawn "$HOLDFAST" lock run "$name" "$@" -- bash -c 'echo $HOLDFAST_TOKEN >"held-$0"; until [ -e "go-$0" ]; do sleep 0.02; done' "$name"
    wait_until 20 test -s "held-$name"
}
renewers() { pgrep -fx "holdfast-renew $1" || true; }
no_renewer() { [ -z "$(renewers "$1")" ]; }

@test "fleet: lock run takes the lock in the cluster, tells its token, and gives it back" {
    store
    expect 7 hf lock run build -- bash -c '[ "$HOLDFAST_LOCK" = build ] && [ "$HOLDFAST_TOKEN" -gt 0 ] && [ -n "$HOLDFAST_STORE" ] && exit 7'
    expect 1 hf lock check build
    # The local store knows nothing of it, and the name is free there.
    expect 0 hf --store local: lock list --all
    [ -z "$output" ]
    expect 0 hf lock list --all --json
    is_json '.locks | length == 1 and .[0].name == "build"'
}

@test "fleet: tokens rise over the local store and the cluster, for one name is one series of numbers (L2)" {
    local first second third
    store
    first=$(hf --store local: lock run x -- bash -c 'echo $HOLDFAST_TOKEN')
    second=$(hf lock run x -- bash -c 'echo $HOLDFAST_TOKEN')
    third=$(hf --store local: lock run x -- bash -c 'echo $HOLDFAST_TOKEN')
    [ "$first" -lt "$second" ]
    [ "$second" -lt "$third" ]
}

@test "fleet: busy names the holder and its host; a waiter gets it next" {
    store
    holding build
    expect 1 hf lock run build -n -- touch ran
    says "already held: pid "
    says " on $(uname -n) for "
    expect 0 hf why build
    says "on $(uname -n) for"
    expect 0 hf --json lock list
    is_json ".locks[0].holders[0].host == \"$(uname -n)\" and .locks[0].holders[0].lease_left_ms > 0"
    spawn "$HOLDFAST" lock run build -- touch second
    wait_until 20 bash -c '"$HOLDFAST" lock list --json | jq -e ".locks[0].waiters | length == 1"'
    [ ! -e ran ]
    [ ! -e second ]
    touch go-build
    wait_until 20 test -e second
}

@test "fleet: a lease of 2 s is renewed while the command runs for longer" {
    store '?call-timeout=600ms'
    holding build --ttl 2s
    local token
    token=$(<held-build)
    # Longer than the lease: seen by the server's own clock, which gives the lock away when it is over.
    expect 1 hf lock run build -w 5s -- true
    expect 0 hf lock check build --token "$token"
    touch go-build
    expect 0 hf lock run build -w 20s -- true
    wait_until 20 no_renewer build
}

@test "fleet: a lock that is broken ends its command and all that it started, with status 3" {
    store
    spawn bash -c '"$HOLDFAST" lock run build -- bash -c "setsid sleep 1000 & echo \$! >child; echo \$HOLDFAST_TOKEN >held-build; sleep 1000"; echo $? >status'
    wait_until 20 test -s held-build
    wait_until 20 test -s child
    # The renewer watches the lock only after a moment; a break before that is found by its first renewal.
    expect 0 hf lock break build --reason test
    wait_until 20 test -s status
    [ "$(<status)" -eq 3 ]
    wait_until 20 bash -c '! kill -0 "$(<child)"'
    expect 3 hf lock check build --token "$(<held-build)"
    expect 0 hf journal query --event lock_broken
    says "reason=test"
}

@test "fleet: a command that was killed is replaced at once, not after its lease" {
    store
    spawn bash -c 'exec "$HOLDFAST" lock run build --ttl 1h -- bash -c "echo \$\$ >held-build; exec sleep 1000"'
    wait_until 20 test -s held-build
    kill -KILL "$(<held-build)"
    expect 0 hf lock run build -w 20s -- true
}

@test "fleet: the wrapper is killed: its command dies with it, and the lock is free" {
    store
    holding build --ttl 1h
    kill -KILL "$spawned_pid"
    expect 0 hf lock run build -w 20s -- true
}

@test "fleet: acquire keeps the lock for the shell with a renewer; release ends it; the death of the shell frees it (L4, L8)" {
    store
    local name=shell-$$ # renewers are looked for on the whole machine
    expect 0 bash -c '"$HOLDFAST" lock acquire "$0" >token && "$HOLDFAST" lock check "$0" --token $(<token) && "$HOLDFAST" lock release "$0" && true' "$name"
    wait_until 20 no_renewer "$name"
    expect 1 hf lock check "$name"
    spawn bash -c '"$HOLDFAST" lock acquire "$0" >token2; touch ready; exec sleep 1000' "$name"
    wait_until 20 test -e ready
    expect 0 hf lock check "$name" --token "$(<token2)"
    [ -n "$(renewers "$name")" ]
    kill -KILL "$spawned_pid"
    expect 0 hf lock run "$name" -w 20s -- true
    wait_until 20 no_renewer "$name"
    expect 3 hf lock check "$name" --token "$(<token2)"
    expect 0 hf journal query --event lock_taken_over
    [ "${#lines[@]}" -eq 1 ]
}

@test "fleet: acquire prints its token to a pipe that ends although the renewer stays" {
    store
    expect 0 timeout 60 bash -c 'token=$("$HOLDFAST" lock acquire shell); [ "$token" -gt 0 ]; "$HOLDFAST" lock release shell --token "$token"'
}

@test "fleet: with --ttl nobody renews for the caller: renew does, and a shorter one ends it" {
    store '?call-timeout=1s'
    # A name of its own: renewers of other runs of these tests are on the same machine.
    expect 0 bash -c 'set -e; token=$("$HOLDFAST" lock acquire "$0" --ttl 60s); "$HOLDFAST" lock renew "$0" --token $token; "$HOLDFAST" lock renew "$0" --token $token --ttl 3s
        [ -z "$(pgrep -fx "holdfast-renew $0")" ]; until ! "$HOLDFAST" lock check "$0" --token $token; do sleep 0.1; done' "unrenewed-$$"
}

@test "fleet: shared holders and slots over the cluster (L1)" {
    store
    holding a --shared
    expect 0 hf lock run a --shared -n -- true
    expect 1 hf lock run a -n -- true
    touch go-a
    holding b --slots 2
    expect 0 hf lock run b --slots 2 -n -- true
    expect 2 hf lock run b --slots 3 -n -- true
    touch go-b
}

@test "fleet: a cluster that does not answer is status 4 in bounded time; --on-timeout proceed says so in the journal (L8)" {
    export HOLDFAST_STORE='etcd://127.0.0.1:1?call-timeout=200ms'
    expect 4 hf lock list
    says "127.0.0.1:1"
    expect 125 hf lock run x -- touch ran
    [ ! -e ran ]
    expect 0 hf lock run x --on-timeout proceed -- touch ran
    [ -e ran ]
    expect 0 hf journal query --event lock_fail_open
    [ "${#lines[@]}" -eq 1 ]
}

@test "fleet: wrong URLs are usage errors, and a password in one is not repeated" {
    local url
    for url in etcd: etcd:// 'etcd://a b' etcd://h?ttl=1ms zookeeper://h; do
        expect 2 hf --store "$url" lock list
    done
    expect 2 hf --store etcd://me:secret@h lock list
    [[ $output != *secret* ]]
}

@test "fleet: a proxy of the environment is not asked" {
    store
    export http_proxy=http://127.0.0.1:1 HTTP_PROXY=http://127.0.0.1:1 ALL_PROXY=http://127.0.0.1:1
    expect 0 hf lock run x -- true
}

@test "fleet: locks of files, plans and groups stay this machine's" {
    store
    echo one >file
    expect 0 hf file edit file -- tr a-z A-Z
    [ "$(<file)" = ONE ]
    expect 0 hf lock list --all
    [ -z "$output" ]
    expect 0 hf lock list --all --kind file
    [ "${#lines[@]}" -eq 2 ]
}

@test "fleet: a file is edited only while the lock in the cluster is held; a token that has passed is refused (L5)" {
    local token
    store
    echo zero >file
    expect 0 hf lock run x -- bash -c 'echo "$HOLDFAST_TOKEN" >token; "$0" file edit file --fenced -- tr a-z A-Z' "$HOLDFAST"
    [ "$(<file)" = ZERO ]
    token=$(<token)
    expect 3 hf file edit file --fence "x:$token" -- tr A-Z a-z
    expect 0 hf lock run x -- "$HOLDFAST" file edit file --fenced -- sed s/ZERO/ONE/
    expect 3 hf file edit file --fence "x:$token" -- tr A-Z a-z
    [ "$(<file)" = ONE ]
    # It is the cluster that is asked, not the lock of that name on this machine.
    expect 3 hf --store local: lock run x -- "$HOLDFAST" --store "$HOLDFAST_STORE" file edit file --fenced -- tr A-Z a-z
    # The fence of this machine refuses what the cluster would let pass, if it forgot.
    holding x
    grep -rlx "$(<held-x)" "$HOLDFAST_DIR/fences" && false
    expect 0 hf file edit file --fence "x:$(<held-x)" -- sed s/ONE/two/
    touch go-x
}

@test "fleet: a command that has ended gives the lock to a waiter of its machine, whichever of them is faster, and nothing is said" {
    local i
    store
    for i in {1..20}; do
        spawn bash -c 'exec "$0" lock run x -w 60s -- sleep 0.02 2>"said-$1"' "$HOLDFAST" "$i"
    done
    for i in "${spawned[@]}"; do wait "$i"; done
    cat said-*
    [ -z "$(cat said-*)" ]
}

# with_id WHAT COMMAND...: on a machine with an empty /etc but for WHAT as its machine-id: none, dir, or the bytes of a file
with_id() {
    unshare -rm sh -c 'mount -t tmpfs none /etc || exit 99
        case $1 in none) ;; dir) mkdir /etc/machine-id ;; *) printf "$1" >/etc/machine-id ;; esac
        shift; exec "$@"' sh "$@"
}

@test "fleet: a machine without an id, as a container, gets an id that its state directory keeps" {
    local id what
    unshare -rm true 2>/dev/null || skip "no user namespaces here"
    store
    # Many at once make one id.
    for what in none '' 'uninitialized\n' "$(printf '%032d' 0)\\n" dir none '' none; do
        spawn with_id "$what" "$HOLDFAST" lock run "x-$RANDOM" -w 20s -- true
    done
    for what in "${spawned[@]}"; do wait "$what"; done
    id=$(<"$HOLDFAST_DIR/stores/host-id")
    [[ "$id" =~ ^[0-9a-f]{32}$ ]]
    [ "$(stat -c %a "$HOLDFAST_DIR/stores/host-id")" = 600 ]
    [ -z "$(find "$HOLDFAST_DIR/stores" -name '.*')" ]
    for what in none '' 'uninitialized\n' dir; do
        run with_id "$what" "$HOLDFAST" doctor --json
        is_json '.checks[] | select(.check == "host") | .status == "absent" and (.found | contains("'"$id"'")) and (.instead | contains("stores/host-id"))'
    done
    # A shell in it keeps a lock; a lock of it is another's everywhere else.
    expect 0 with_id none sh -c '"$0" lock acquire shell && "$0" lock release shell' "$HOLDFAST"
    spawn with_id none "$HOLDFAST" lock run build -- bash -c 'touch held; until [ -e go ]; do sleep 0.02; done'
    wait_until 20 test -e held
    expect 1 with_id none env HOLDFAST_DIR="$PWD/other" "$HOLDFAST" lock run build -n -- true
    [ "$(<other/stores/host-id)" != "$id" ]
    touch go
    expect 0 with_id none env HOLDFAST_DIR="$PWD/other" "$HOLDFAST" lock run build -w 20s -- true
    # The id of the machine comes first. Another text is refused.
    expect 3 with_id 'nonsense\n' "$HOLDFAST" lock run build -- true
    says /etc/machine-id
    run with_id "$(printf '%032d' 7)\\n" "$HOLDFAST" doctor --json
    is_json '.checks[] | select(.check == "host") | .status == "ok" and (.found | contains("00000007"))'
}

@test "fleet: a damaged or readable id in the state directory is refused" {
    unshare -rm true 2>/dev/null || skip "no user namespaces here"
    store
    expect 0 with_id none "$HOLDFAST" lock run build -- true
    chmod 644 "$HOLDFAST_DIR/stores/host-id"
    expect 3 with_id none "$HOLDFAST" lock run build -- true
    chmod 600 "$HOLDFAST_DIR/stores/host-id"
    for text in '' 0123 "$(printf '%032X' 4294967295)" "$(printf '%033d' 7)"; do
        echo "$text" >"$HOLDFAST_DIR/stores/host-id"
        expect 3 with_id none "$HOLDFAST" lock run build -- true
        says stores/host-id
    done
    rm "$HOLDFAST_DIR/stores/host-id"
    expect 0 with_id none "$HOLDFAST" lock run build -- true
}
