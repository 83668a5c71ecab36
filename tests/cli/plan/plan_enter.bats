# plan enter: what a command sees and changes, and what it cannot get at. Each runs as root and as an ordinary user.
load ../helper
load ../plan_helper

setup() { plan_setup; }
teardown() { plan_teardown; }

changes_stay_inside() {
    needs_overlay
    mkdir -p T/dir; echo old >T/f; echo keep >T/dir/k; own T
    before=$(tree T)
    plan_over T
    inside 'cd T; echo new >f; echo more >added; rm dir/k; mkdir made; chmod 600 f; ln -s f link; [ "$(cat f)" = new ]'
    [ "$(tree T)" = "$before" ]
    run hp --json plan show p
    is_json '.state == "ACTIVE" and .dirty and (.in_use | not) and .sandboxes[0].strategy == "overlay" and .sandboxes[0].settled'
    # the next command finds them
    inside 'cd T; [ "$(cat f)" = new ]; [ -f added ]; [ ! -e dir/k ]; [ -L link ]'
    # and they are where a commit looks for them
    [ "$(cat "$(upper 1)/f")" = new ]
}
@test "a command's changes stay inside its sandbox and are there for the next command (L12)" { both changes_stay_inside; }

status_and_signals() {
    needs_overlay; own T; plan_over T
    expect 7 hp plan enter p -- sh -c 'exit 7'
    expect 143 hp plan enter p -- sh -c 'kill -TERM $$'
    expect 127 hp plan enter p -- "$ROOM/no-such-command"
    touch "$ROOM/not-executable"
    expect 126 hp plan enter p -- "$ROOM/not-executable"
    expect 1 hp plan enter no-such-plan -- true
    says "no such plan"
    hp plan enter p -- printf '[%s]' 'a b' '' c >out
    [ "$(cat out)" = '[a b][][c]' ]
    # a signal to us reaches the command
    chmod 777 "$ROOM"
    spawn hp -q plan enter p -- sh -c 'trap "exit 9" TERM; echo $PPID >up; while :; do sleep 0.05; done'
    wait_until 20 test -s up
    kill -TERM "$(cat up)"
    status=0; wait "$spawned_pid" || status=$?
    [ "$status" -eq 9 ]
}
@test "enter gives the command's own exit status and words, and passes signals on" { both status_and_signals; }

no_capability() {
    needs_overlay; own T; plan_over T
    if [ "$as_user" = 1 ] || [ "$(id -u)" != 0 ]; then
        hp -q plan enter p -- grep -E '^Cap(Inh|Prm|Eff|Bnd|Amb)' /proc/self/status >caps
        run ! grep -v '0000000000000000$' caps
    else
        # root keeps its rights over files; CAP_SYS_ADMIN (21), SYS_PTRACE (19), DAC_READ_SEARCH (2) are gone from all sets
        eff=0x$(hp -q plan enter p -- sed -n 's/^CapEff:[ \t]*//p' /proc/self/status)
        bnd=0x$(hp -q plan enter p -- sed -n 's/^CapBnd:[ \t]*//p' /proc/self/status)
        for bit in 21 19 2; do [ $((((eff | bnd) >> bit) & 1)) -eq 0 ]; done
        [ $(((eff >> 1) & 1)) -eq 1 ]
    fi
    [ "$(hp -q plan enter p -- id -u)" = "$(as id -u)" ]
    [ "$(hp -q plan enter p -- id -g)" = "$(as id -g)" ]
}
@test "no capability that could undo the sandbox is kept after exec; ids are the same (trap 36)" { both no_capability; }

inherited_descriptor() {
    needs_overlay; echo old >T/f; own T; plan_over T
    as "$BASH" -c 'exec 7<T; exec '"$( [ "$as_user" = 1 ] && echo "$ROOM/holdfast" || echo "$HOLDFAST")"' -q plan enter p -- bash -c "ls /proc/self/fd; echo x >/proc/self/fd/7/f" ' >fds 2>err || true
    [ "$(cat T/f)" = old ]
    run ! grep -qx 7 fds
    # a directory as standard input is the same way out
    run as "$BASH" -c 'exec '"$( [ "$as_user" = 1 ] && echo "$ROOM/holdfast" || echo "$HOLDFAST")"' plan enter p -- true <T'
    [ "$status" -eq 3 ]; says "directory"
}
@test "no descriptor of the old tree is inherited (trap 1, L12)" { both inherited_descriptor; }

standard_input_of_target() {
    needs_overlay; seq 3 >T/f; own T; plan_over T
    # The first line is read outside: the sandbox goes on behind it.
    [ "$(bash -c 'head -c 2 >/dev/null; "$@" -q plan enter p -- bash -c "cat; echo past >/proc/self/fd/0; cat T/f"' x \
        $([ "$as_user" = 1 ] && echo "setpriv --reuid=65534 --regid=65534 --clear-groups $ROOM/holdfast" || echo "$HOLDFAST") <T/f)" = $'2\n3\npast' ]
    [ "$(cat T/f)" = $'1\n2\n3' ]
    [ "$(hp plan diff p --name-only)" = f ]
}
@test "a file of the target as standard input is that of the sandbox (L12)" { both standard_input_of_target; }

standard_output_in_target() {
    needs_overlay; echo old >T/f; own T; plan_over T
    local n
    for n in 1 2; do
        run bash -c "exec $n>>T/f; \"\$@\" plan enter p -- sh -c 'echo ran >&$n'" x \
            $([ "$as_user" = 1 ] && echo "setpriv --reuid=65534 --regid=65534 --clear-groups $ROOM/holdfast" || echo "$HOLDFAST")
        [ "$status" -eq 3 ]
    done
    run ! grep -q ran T/f
    grep -q 'past the sandbox' T/f # the message itself goes where the user sent it
    hp -q plan enter p -- echo piped | cat >T/f
    [ "$(cat T/f)" = piped ]
}
@test "a file of the target as output is refused, a pipe to it is not (L12)" { both standard_output_in_target; }

cwd_inside() {
    needs_overlay; mkdir T/sub; echo old >T/f; own T; plan_over T
    (cd T && inside 'echo new >f; echo n >made; [ "$(pwd -P)" = "$1/T" ]; [ "$(readlink /proc/self/cwd)" = "$1/T" ]' "$ROOM")
    (cd T/sub && inside 'echo new >here')
    [ "$(cat T/f)" = old ]
    [ ! -e T/made ]
    [ ! -e T/sub/here ]
    [ -e "$(upper 1)/sub/here" ]
    # a directory that is gone inside is named
    inside 'rm -r T/sub'
    (cd T/sub && expect 125 hp plan enter p -- true && says "chdir")
}
@test "a command that starts inside the target works in the sandbox (trap 2)" { both cwd_inside; }

nested_targets() {
    needs_overlay; mkdir -p T/in/deep T2; echo o >T/o; echo i >T/in/i; echo d >T/in/deep/d; own T T2
    before=$(tree T)
    for order in 'T T/in T/in/deep T2' 'T2 T/in/deep T/in T'; do
        # shellcheck disable=SC2086
        plan_over $order
        inside 'echo 1 >T/o; echo 2 >T/in/i; echo 3 >T/in/deep/d; echo 4 >T2/n; echo 5 >T/in/deep/new'
        [ "$(tree T)" = "$before" ]
        [ ! -e T2/n ]
        n=0
        for dir in $order; do
            n=$((n + 1))
            case $dir in
            T) [ "$(ls "$(upper $n)")" = o ] ;;
            T/in) [ "$(ls "$(upper $n)")" = i ] ;;
            T/in/deep) [ "$(ls "$(upper $n)" | tr '\n' ' ')" = 'd new ' ] ;;
            T2) [ "$(ls "$(upper $n)")" = n ] ;;
            esac
        done
        hp -q plan rm p --discard
    done
}
@test "nested targets: each upper gets exactly its own changes, in any order of adding (traps 3 and 4)" { both nested_targets; }

odd_names() {
    needs_overlay
    local names=('a:b' 'a,b' 'a\b' $'a\nb' $'\xff\xfe' 'lower=x' ' ' "$(printf 'n%.0s' $(seq 255))" "it's \"q\"") i=0 name
    for name in "${names[@]}"; do
        i=$((i + 1))
        mkdir -p "T/$name"; echo old >"T/$name/f"; own "T/$name"
        hp -q plan new "o$i"
        hp -q plan add "o$i" "$name$i" "T/$name" 2>/dev/null || hp -q plan add "o$i" "s$i" "T/$name"
        hp -q plan enter "o$i" -- sh -c 'cd "$1" && echo new >f && echo n >g' x "T/$name"
        [ "$(cat "T/$name/f")" = old ]
        [ ! -e "T/$name/g" ]
        hp -q plan enter "o$i" -- sh -c 'cd "$1" && [ "$(cat f)" = new ]' x "T/$name"
        hp --json plan show "o$i" | jq -e '.sandboxes | length == 1' >/dev/null
        hp -q plan rm "o$i" --discard
    done
}
@test "separators, newlines, 255 bytes and invalid UTF-8 in a target's path (trap 8)" { both odd_names; }

second_enter_joins() {
    needs_overlay; own T; plan_over T
    mkfifo go; chmod 666 go; chmod 777 "$ROOM"
    spawn hp -q plan enter p -- sh -c 'readlink /proc/self/ns/mnt >ns1; echo first >T/f; read x <go'
    wait_until 20 test -s ns1
    wait_until 20 test -s "$(upper 1)/f"
    hp -q plan enter p -- sh -c 'readlink /proc/self/ns/mnt >ns2; cat T/f >seen; echo second >T/g'
    cmp ns1 ns2
    [ "$(cat seen)" = first ]
    run hp --json plan show p
    is_json '.in_use and (.sandboxes[0].settled | not)'
    expect 1 hp plan rm p --discard
    says "still"
    # no sandbox is added while a process that joins would be without it
    mkdir T3; own T3
    expect 1 hp plan add p late T3
    echo x >go
    wait "$spawned_pid"
    wait_until 20 sh -c '[ ! -e T/g ]'
    run hp --json plan show p
    is_json '(.in_use | not) and .sandboxes[0].settled'
    hp -q plan add p late T3
}
@test "a second enter joins the first by setns: one mount of one upper (trap 12)" { both second_enter_joins; }

enter_again() {
    needs_overlay; own T; plan_over T
    for i in 1 2 3; do inside 'echo $1 >>T/log' $i; done
    [ "$(wc -l <"$(upper 1)/log")" -eq 3 ]
    hp -q plan rm p --discard
    [ ! -e "$HOLDFAST_DIR/plans/p" ]
}
@test "the volatile marker does not stop the next enter, nor mode 000 a removal (trap 13)" { both enter_again; }

left_behind() {
    needs_overlay; own T; plan_over T; chmod 777 "$ROOM"
    # shellcheck disable=SC2016
    run hp plan enter p -- sh -c 'sh -c "echo \$\$ >pid; while [ ! -e stop ]; do sleep 0.05; done; echo late >T/late" >/dev/null 2>&1 </dev/null & while [ ! -s pid ]; do sleep 0.02; done'
    [ "$status" -eq 0 ]; says "still run"
    run hp --json plan show p
    is_json '.in_use'
    expect 1 hp plan rm p --discard
    touch stop
    wait_until 20 sh -c '[ -s "'"$(upper 1)"'/late" ]'
    in_use() { hp --json plan show p | jq -e '(.in_use | not) and .sandboxes[0].settled' >/dev/null; }
    wait_until 20 in_use
}
@test "a process that outlives the command keeps the sandbox in use; it settles when that has ended" { both left_behind; }

pipes_end() {
    needs_overlay; own T; plan_over T; chmod 777 "$ROOM"
    # the reader sees the end although something of the command lives on
    out=$(hp -q plan enter p -- sh -c 'echo hello; timeout 10 sh -c "while [ ! -e stop ]; do sleep 0.05; done" >/dev/null 2>&1 </dev/null &')
    [ "$out" = hello ]
    touch stop
}
@test "neither helper nor census holds the caller's pipes open" { both pipes_end; }

escape_proc() {
    needs_overlay; echo old >T/f; own T; plan_over T
    mkfifo hold; chmod 666 hold
    spawn as sh -c 'read x <hold'
    out=$spawned_pid
    # by another process's root, by unmounting, by nested namespaces
    inside '
        for pid in $1 1; do
            { echo x >"/proc/$pid/root$2/T/f"; } 2>/dev/null || true
            { echo x >"/proc/$pid/cwd/T/f"; } 2>/dev/null || true
        done
        umount T 2>/dev/null || true
        umount -l T 2>/dev/null || true
        unshare -Urm umount -l T 2>/dev/null || true
        unshare -Urm sh -c "umount -l T; echo x >T/f" 2>/dev/null || true
        unshare -Urm sh -c "mkdir b; mount --bind . b && echo x >b/T/f" 2>/dev/null || true
        nsenter -t $1 -m sh -c "echo x >$2/T/f" 2>/dev/null || true
        true' "$out" "$ROOM"
    [ "$(cat T/f)" = old ]
    echo x >hold
}
@test "/proc/PID/root, unmounting and nested namespaces do not lead back to the target (L12)" { both escape_proc; }

swapped_target() {
    needs_overlay; mkdir other; echo o >other/f; echo t >T/f; own T other; plan_over T
    mv T T.real; ln -s other T
    expect 3 hp plan enter p -- sh -c 'echo x >T/f'
    says "symbolic link"
    [ "$(cat other/f)" = o ]
    rm T; mkdir T; own T
    expect 3 hp plan enter p -- true
    says "was replaced by another one"
    rmdir T
    expect 3 hp plan enter p -- true
    says "gone"
    mv T.real T
    inside '[ "$(cat T/f)" = t ]'
    run hp --json journal query --event plan_refused
    [ "$(grep -c plan_refused <<<"$output")" -eq 3 ]
}
@test "a target that was swapped for a symlink or another directory is refused, with one event each (L8, L12)" { both swapped_target; }

symlinked_target() {
    needs_overlay; mkdir real; echo r >real/f; ln -s real link; own real; plan_over link
    run hp --json plan show p
    is_json '.sandboxes[0].target | endswith("/real")'
    rm link; ln -s T link
    inside '[ "$(cat real/f)" = r ]; echo n >real/f'
    [ "$(cat real/f)" = r ]
}
@test "a target that is a symlink is resolved once" { both symlinked_target; }

sockets() {
    needs_overlay; own T; plan_over T
    command -v python3 >/dev/null || skip "no python3"
    as /usr/bin/python3 -c 'import socket,os,time
s=socket.socket(socket.AF_UNIX); s.bind("T/sock"); s.listen(1); open("T/up","w").close()
while not os.path.exists("T/stop"): time.sleep(0.05)' 3>&- &
    spawned+=($!)
    wait_until 20 test -e T/up
    inside '/usr/bin/python3 -c "import socket
s=socket.socket(socket.AF_UNIX)
try: s.connect(\"T/sock\")
except ConnectionRefusedError: print(\"refused\")"' >said
    [ "$(cat said)" = refused ]
    touch T/stop
}
@test "a unix socket that listens in the target refuses inside, as the manual says (trap 28)" { both sockets; }

unreadable() {
    needs_overlay; mkdir -p T/d/closed; echo s >T/d/closed/s; echo u >T/d/u; own T; chmod 000 T/d/closed T/d/u; plan_over T
    inside 'rm -rf T/d || { chmod -R u+rwx T/d; rm -rf T/d; }; [ ! -e T/d ]'
    [ -d T/d/closed ]
    [ "$(stat -c %a T/d/closed)" = 0 ]
    hp -q plan rm p --discard
}
@test "unreadable entries in a deleted directory (trap 34)" { both unreadable; }

large_file() {
    needs_overlay; truncate -s 1G T/sparse; head -c 8M /dev/urandom >T/big; own T; plan_over T
    sum=$(md5sum <T/big)
    inside 'printf x | dd of=T/big bs=1 seek=100 conv=notrunc status=none; printf y | dd of=T/sparse bs=1 seek=5 conv=notrunc status=none'
    [ "$(md5sum <T/big)" = "$sum" ]
    [ "$(du -k "$(upper 1)/sparse" | cut -f1)" -lt 1024 ]
}
@test "one byte of a large file: copied up as a whole, holes kept (trap 35)" { both large_file; }

makes_its_plan() {
    needs_overlay; mkdir -p T "$ROOM/a/T"; echo o >T/f; echo o >"$ROOM/a/T/f"; own T "$ROOM/a"
    hp -q plan enter p --in T --in a/T/ -- sh -c 'echo n >T/f; echo n >a/T/f; exit 5' && false || [ $? -eq 5 ]
    [ "$(cat T/f a/T/f)" = "$(printf 'o\no')" ]
    run hp --json plan show p
    is_json '.state == "ACTIVE" and [.sandboxes[].name] == ["T","T-2"] and all(.sandboxes[]; .strategy == "overlay" and .dirty)'
    # one that is there is not touched
    expect 1 hp plan enter p --in T -- true
    says "--in needs a new plan"
    hp -q plan commit p
    [ "$(cat T/f a/T/f)" = "$(printf 'n\nn')" ]
    # nothing is left of one whose command cannot be started
    expect 125 hp plan enter q --in T --in no-such-directory -- true
    status=0; hp plan enter q --in T -- true >T/out 2>said || status=$?
    [ "$status" -ne 0 ]
    grep -q 'outside the target' said
    expect 1 hp plan show q
    says "no such plan"
    expect 127 hp plan enter q --in T -- "$ROOM/no-such-command"
    hp -q plan show q
}
@test "enter --in makes the plan, with a sandbox over each directory" { both makes_its_plan; }

never_entered() {
    mkdir -p T; echo o >T/f; own T; chmod 751 T
    plan_over T
    before=$(tree T)
    [ -z "$(hp plan diff p --name-only)" ]
    run hp --json plan show p
    is_json '.dirty | not'
    chmod 711 T
    run hp --json plan commit p
    is_json '.outcome == "committed" and .added == 0 and .changed == 0 and .deleted == 0'
    [ "$(stat -c %a T)" = 711 ]
    chmod 751 T
    [ "$(tree T)" = "$before" ]
}
@test "a plan that was never entered changes nothing" { both never_entered; }
