# run --in with --readonly-rest and --no-network: what the command can write and reach besides. As root and as an ordinary user.
load ../helper
load ../plan_helper

# Not below /tmp, which stays writable.
setup() { [ -d /var/tmp ] || skip "NO /var/tmp HERE"; export TMPDIR=/var/tmp HOLDFAST_JOURNAL_WAIT=5s; plan_setup; }
teardown() { plan_teardown; }

# room: T with a file, out beside it with what is to stay as it is, as the user of this test
room() {
    mkdir -p out/dir out/allowed home/.claude
    echo one >T/a
    echo kept >out/f
    echo kept >out/allowed/f
    echo '{}' >home/.claude.json
    own T out home
}

# kept: nothing beside T was changed
kept() { [ "$(cat out/f)" = kept ] && [ "$(stat -c %a out/f)" = 644 ] && [ "$(ls -A out | paste -sd' ')" = "allowed dir f" ] || { ls -lAR out; cat out/f; return 1; }; }

# Each of them would change something beside the targets.
attempts='
t() { "$@" 2>/dev/null && echo "GOT THROUGH: $*" >>T/through; return 0; }
t sh -c "echo x >out/f"
t sh -c "echo x >>out/f"
t touch out/new
t mkdir out/new
t rm -f out/f
t mv out/f T/f
t mv T/a out/new
t ln T/a out/new
t ln -s x out/new
t mkfifo out/new
t truncate -s 0 out/f
t rmdir out/dir
t perl -e "truncate(q(out/f), 0) or exit 1"'
modes='
t chmod 600 out/f
t touch -d 2000-01-01 out/f'

only_targets() {
    needs_overlay
    room
    expect 0 hp run x --in T --readonly-rest --verify 'echo v >T/v; ! echo v 2>/dev/null >out/f' -- bash -c "$attempts$modes
        echo 1 >T/a && mkdir T/d && echo 2 >T/d/e && mv T/d T/moved && : >/dev/null && unshare -Ur true &&
        touch /tmp/hf-\$\$ && rm /tmp/hf-\$\$ && touch /dev/shm/hf-\$\$ && rm /dev/shm/hf-\$\$ && touch $HOLDFAST_DIR/mine && rm $HOLDFAST_DIR/mine &&
        echo mine >home/.claude/settings && echo '{1}' >home/.claude.json && $(cmd) lock run inner -- true"
    [ ! -e T/through ] || { cat T/through; return 1; }
    kept
    [ "$(cat T/a T/moved/e T/v home/.claude/settings home/.claude.json)" = "$(printf '1\n2\nv\nmine\n{1}')" ]
}
# cmd: the binary that the user of this test can execute
cmd() { if [ "$as_user" = 1 ]; then echo "$ROOM/holdfast"; else echo "$HOLDFAST"; fi; }
@test "--readonly-rest: command and verifier write the target, /tmp, /dev/shm, the state directory and the client's own, and nothing else" { both only_targets; }

write_places() {
    needs_overlay
    room
    ln -s out/allowed link
    expect 0 hp run x --in T --readonly-rest --write link --write out/dir -- bash -c 'echo x >out/allowed/f && touch out/dir/g && ! touch out/g 2>/dev/null'
    [ "$(cat out/allowed/f)" = x ]
    [ -e out/dir/g ]
    [ ! -e out/g ]
    # A target in a place that stays writable is the sandbox all the same.
    expect 3 hp run x --in T --readonly-rest --write "$ROOM" -- bash -c 'echo bad >T/a; touch out/h; exit 3'
    [ "$(cat T/a)" = one ]
    [ -e out/h ]
    expect 3 hp run x --in T --readonly-rest --write nowhere -- touch T/ran
    says "nowhere"
    expect 2 hp run x --in T --write out -- true
    expect 2 hp run x --readonly-rest -- true
    [ ! -e T/ran ]
}
@test "--write: more places, by a symlink too; one that holds the target does not open the target; one that is not there is refused" { both write_places; }

escapes() {
    needs_overlay
    room
    sleep 60 3>&- &
    spawned+=($!)
    [ "$as_user" = 0 ] || { as sleep 60 3>&- & spawned+=($!); }
    exec 7<out 8<out/f
    expect 0 hp run x --in T --readonly-rest -- bash -c "t() { \"\$@\" >/dev/null 2>&1 && echo \"GOT THROUGH: \$*\" >>T/through; return 0; }
        t mount -o remount,rw /
        t mount -o remount,bind,rw /
        t umount /tmp
        t umount -l T
        t unshare -Urm sh -c 'mount -o remount,bind,rw / && echo x >out/f'
        t unshare -Urm sh -c 'mount --rbind / /mnt; mount -o remount,bind,rw /mnt; echo x >/mnt$ROOM/out/f'
        t unshare -Urm sh -c 'umount -l /tmp; echo x >out/f'
        for pid in 1 $$ $! \$PPID; do t sh -c \"echo x >/proc/\$pid/root$ROOM/out/f\"; t sh -c \"echo x >/proc/\$pid/cwd/out/f\"; done
        t sh -c 'echo x >/proc/self/fd/7/f'
        t sh -c 'echo x >/proc/self/fd/8'
        t sh -c 'echo x >/proc/self/fd/0'
        t nsenter -t $! -m -U sh -c 'echo x >$ROOM/out/f'
        t ln out/f T/linked
        t ln out/f /tmp/hf-linked-\$\$
        [ \"\$(cat)\" = kept ]" <out/f
    exec 7<&- 8<&-
    [ ! -e T/through ] || { cat T/through; return 1; }
    kept
}
@test "--readonly-rest: remount, unmount, nested namespaces, /proc/PID/root, descriptors, standard input and hard links lead nowhere (L12)" { both escapes; }

@test "--readonly-rest: a file system that is mounted outside meanwhile does not come in writable" {
    [ "$(id -u)" = 0 ] || skip "needs root"
    needs_overlay
    room
    mkdir -p m/sub
    # Shared, as systemd makes all mounts.
    { mount --bind m m && mount --make-shared m; } || skip "NO MOUNTS HERE"
    spawn "$HOLDFAST" run x --in T --readonly-rest -- bash -c 'touch /tmp/up-$0; for i in $(seq 3000); do [ -e /tmp/go-$0 ] && break; sleep 0.01; done; touch m/sub/inside; true' "${ROOM##*/}"
    wait_until 20 test -e "/tmp/up-${ROOM##*/}"
    mount -t tmpfs none m/sub
    touch "/tmp/go-${ROOM##*/}"
    wait "$spawned_pid" || true
    run ls m/sub
    umount m/sub m
    rm -f "/tmp/up-${ROOM##*/}" "/tmp/go-${ROOM##*/}"
    [ -z "$output" ]
}

remembered() {
    needs_overlay
    room
    expect 3 hp run x --in T --readonly-rest --no-network --write out/allowed -- bash -c 'echo $HOLDFAST_ATTEMPT >>T/n; touch out/allowed/g; touch out/new 2>/dev/null && touch T/through; [ "$(grep -c : /proc/net/dev)" = 1 ] || touch T/through; [ "$HOLDFAST_ATTEMPT" = 2 ] || exit 3'
    expect 0 hp run x --resume
    says "read-only rest, write $ROOM/out/allowed, no network"
    [ "$(paste -sd' ' T/n)" = "1 2" ]
    [ ! -e T/through ]
    [ -e out/allowed/g ]
    expect 0 hp run y --in T --readonly-rest --max-runs 2 -- bash -c 'touch out/new 2>/dev/null && touch T/through; echo loop >>T/n'
    [ "$(paste -sd' ' T/n)" = "1 2 loop loop" ]
    [ ! -e T/through ]
    # A resume may add it.
    expect 3 hp run z --in T -- bash -c '[ "$HOLDFAST_ATTEMPT" = 2 ] || exit 3; touch out/new 2>/dev/null && exit 4; exit 0'
    expect 0 hp run z --resume --readonly-rest
    kept
}
@test "--readonly-rest, --write and --no-network hold in loops and when the session is resumed" { both remembered; }

@test "--readonly-rest and --no-network hold in the background" {
    room
    expect 0 hp run x --in T --readonly-rest --no-network --detach -- bash -c 'touch out/new 2>/dev/null; grep -c : /proc/net/dev >T/n'
    expect 0 hp wait x
    [ "$(cat T/n)" = 1 ]
    kept
}

by_landlock() {
    room
    probe=$(hp run probe --in T --readonly-rest --strategy copy -- true 2>&1) || [[ "$probe" != *andlock* ]] || skip "NO LANDLOCK HERE: $probe"
    expect 0 hp run x --cwd T --in T --readonly-rest --strategy copy -- bash -c "cd '$ROOM'; copy=\$OLDPWD; t() { \"\$@\" 2>/dev/null && echo \"GOT THROUGH: \$*\" >>\$copy/through; return 0; }
        ${attempts//T\//\$copy\/}
        t sh -c 'echo x >T/a'; t touch T/x
        t unshare -Urm sh -c 'mount --bind out /tmp && echo x >/tmp/f'
        echo 1 >\$copy/a && mkdir \$copy/d && mv \$copy/a \$copy/d/ && : >/dev/null && touch /tmp/hf-\$\$ && rm /tmp/hf-\$\$ && echo mine >home/.claude/settings"
    says "Landlock"
    [ ! -e T/through ] || { cat T/through; return 1; }
    kept
    [ "$(cat T/d/a home/.claude/settings)" = "$(printf '1\nmine')" ]
    # The target itself lies in a place that stays writable: that cannot be narrowed.
    place=$(as mktemp -d /tmp/hf-confined.XXXXXX)
    run hp run y --in "$place" --readonly-rest --strategy copy -- touch ran
    rmdir "$place"
    [ "$status" -ne 0 ]
    [ ! -e ran ]
    says "stays writable"
}
@test "--readonly-rest without a mount namespace (copy): Landlock keeps contents and names, which is said" { both by_landlock; }

refused() {
    needs_overlay
    room
    cp "$HELPERS/helper-enosys" "$HELPERS/helper-nouserns" "$ROOM/"
    run as ./helper-enosys landlock_create_ruleset -- true
    [ "$status" -ne 77 ] || skip "NO SECCOMP FILTERS HERE"
    # Mounts that cannot be changed: Landlock instead.
    run as ./helper-enosys mount_setattr -- "$(cmd)" run x --in T --readonly-rest -- sh -c 'echo 1 >T/a; mkdir T/d; mv T/d T/e; echo x >out/f'
    [[ "$output" == *"Landlock"* ]] || { echo "$output"; return 1; }
    kept
    [[ "$output" == *"the command cannot be confined"* ]] || [ "$(cat T/a)" = one ]
    run as ./helper-enosys mount_setattr,landlock_create_ruleset -- "$(cmd)" run y --in T --readonly-rest -- touch T/ran "/tmp/ran-${ROOM##*/}"
    [ "$status" -ne 0 ]
    says "landlock of read-only rest"
    run as ./helper-enosys landlock_create_ruleset -- "$(cmd)" run y --in T --readonly-rest --strategy copy -- touch T/ran "/tmp/ran-${ROOM##*/}"
    [ "$status" -ne 0 ]
    says "landlock of read-only rest"
    run as ./helper-enosys unshare -- "$(cmd)" run y --in T --no-network --strategy copy -- touch T/ran "/tmp/ran-${ROOM##*/}"
    [ "$status" -ne 0 ]
    says "unshare of network namespace"
    [ ! -e T/ran ]
    [ ! -e "/tmp/ran-${ROOM##*/}" ]
    [ "$(hp -q journal query --event run_committed --name y --json | jq -s length)" -eq 0 ]
}
@test "--readonly-rest and --no-network: where neither way works nothing is started, and why is said (L12)" { both refused; }

server='import socket, sys
s = socket.socket()
s.bind(("127.0.0.1", 0))
s.listen(16)
open(sys.argv[1] + ".new", "w").write(str(s.getsockname()[1]))
__import__("os").rename(sys.argv[1] + ".new", sys.argv[1])
while True: s.accept()[0].close()'
loopback='import socket
s = socket.socket()
s.bind(("127.0.0.1", 0))
s.listen(1)
c = socket.create_connection(s.getsockname(), 30)
s.accept()[0].sendall(b"hello")
assert c.recv(5) == b"hello"'

network() {
    needs_overlay
    room
    command -v python3 >/dev/null || skip "no python3"
    rm -f port
    spawn python3 -c "$server" "$ROOM/port"
    wait_until 20 test -s port
    connect="exec 3<>/dev/tcp/127.0.0.1/$(cat port)"
    # The same command with and without.
    expect 0 hp run x --in T -- bash -c "$connect"
    for strategy in overlay copy; do
        run hp run x --in T --strategy $strategy --no-network --verify "! bash -c '$connect' 2>/dev/null" -- python3 -c "$loopback"
        [ "$status" -eq 0 ] || { echo "$strategy: $output"; return 1; }
        expect 0 hp run x --in T --strategy $strategy --no-network -- bash -c "echo 1 >T/a; ! ($connect) 2>/dev/null"
        expect 0 hp run x --in T --strategy $strategy --no-network -- bash -c "! nsenter -t $$ -n true 2>/dev/null && ! unshare -Urn nsenter -t $$ -n true 2>/dev/null"
    done
}
@test "--no-network: a server outside is not reached, loopback inside works, and no namespace leads back" { both network; }
