# What cannot be a target, which strategy is taken and why, and machines that lack something.
load ../helper
load ../plan_helper

setup() { plan_setup; }
teardown() {
    if [ -n "${mounted:-}" ]; then umount -l "$mounted" 2>/dev/null || true; fi
    plan_teardown
}

needs_root() { [ "$(id -u)" = 0 ] || skip "NEEDS ROOT"; }

state_inside() {
    own T; hp -q plan new first; hp -q plan rm first
    # the state directory inside a target, a target inside the state directory, and both the same
    export HOLDFAST_DIR="$ROOM/T/.hf"
    hp -q plan new p
    expect 3 hp plan add p s T
    says "state directory"
    mkdir -p "$ROOM/T/.hf/plans/x"; own "$ROOM/T/.hf"
    expect 3 hp plan add p s T/.hf/plans/x
    expect 3 hp plan add p s T/.hf
    run hp --json journal query --event plan_refused
    [ "$(grep -c plan_refused <<<"$output")" -eq 3 ]
    [ -z "$(ls "$HOLDFAST_DIR/plans/p/s" 2>/dev/null)" ]
}
@test "a state directory inside a target, and the reverse, are refused with exit 3 (trap 7, L12)" { both state_inside; }

@test "a mount below the target is refused by name, for both users (trap 5)" {
    needs_root
    mkdir -p "T/m n" ; mount -t tmpfs t "T/m n" || skip "NO TMPFS CAN BE MOUNTED"
    mounted="$ROOM/T/m n"
    hp -q plan new p
    expect 3 hp plan add p s T
    says "T/m n"
    cp "$HOLDFAST" holdfast; chmod 755 "$ROOM"; chown 65534:65534 T . ; as_user=1
    export HOLDFAST_DIR="$ROOM/ustate"
    hp -q plan new p
    expect 3 hp plan add p s T
    says "T/m n"
    umount "$mounted"; mounted=''
    # mounted between add and enter
    hp -q plan add p s T --strategy overlay 2>/dev/null || skip "NO OVERLAY HERE"
    mount -t tmpfs t "T/m n"; mounted="$ROOM/T/m n"
    expect 3 hp plan enter p -- true
    says "mounted below it"
}

@test "the root directory and other mounts' parents cannot be targets" {
    hp -q plan new p
    expect 3 hp plan add p s /
    says "state directory"
}

foreign_gid() {
    needs_root
    plan_as_user
    mkdir -p T/team; echo x >T/team/f; chown -R 65534:65534 T
    user() { timeout 60 setpriv --reuid=65534 --regid=65534 --groups=65534,4242 "$ROOM/holdfast" "$@"; }
    user -q plan new p
    # a directory of a supplementary group, as teams have them
    chgrp 4242 T; chmod 2775 T
    expect 4 user plan add p s T --strategy overlay
    says "EOVERFLOW"; says "4242"
    run user --json plan add p s T
    is_json '(.strategy == "copy" or .strategy == "clone") and (.same_path | not) and (.why | contains("EOVERFLOW"))'
    user -q plan rm p --discard
    # only a file in it
    chgrp 65534 T; chmod 755 T; chgrp 4242 T/team; chmod 2775 T/team
    user -q plan new p
    expect 4 user plan add p s T --strategy overlay
    says "team"
    # what the user may not write outside makes no difference
    chown root:root T/team; chmod 755 T/team
    user -q plan add p s T --strategy overlay
}
@test "files of a foreign group: overlay is refused with the reason, auto copies (trap 9)" { foreign_gid; }

git_outside() {
    needs_overlay
    mkdir -p repo/src; echo s >repo/src/f; own repo
    as git init -q repo; as git -C repo add -A; as git -C repo commit -qm one
    as git -C repo worktree add -q ../linked
    head=$(as git -C repo rev-parse HEAD)
    hp -q plan new p
    expect 3 hp plan add p s repo/src
    says "repo/.git"
    expect 3 hp plan add p s linked
    says "repo/.git"
    # the whole repository, or its git directory first
    hp -q plan add p top repo
    inside 'cd repo && echo n >src/f && git commit -qam two'
    [ "$(as git -C repo rev-parse HEAD)" = "$head" ]
    hp -q plan rm p --discard
    hp -q plan new p
    hp -q plan add p git repo/.git
    hp -q plan add p s repo/src
    inside 'cd repo/src && echo n >f && git commit -qam two && git rev-parse HEAD >../../inside'
    [ "$(as git -C repo rev-parse HEAD)" = "$head" ]
    [ "$(cat inside)" != "$head" ]
    hp -q plan rm p --discard
    hp -q plan new p
    hp -q plan add p git repo/.git
    hp -q plan add p wt linked
    inside 'cd linked && echo n >src/f && git commit -qam two'
    [ -z "$(as git -C linked status --short)" ]
    [ "$(as git -C linked rev-parse HEAD)" = "$head" ]
    hp -q plan rm p --discard
    # the caller may know better
    hp -q plan new p
    hp -q plan add p s repo/src --git-outside
}
@test "part of a repository whose git directory is in no target is refused (trap 11)" { chmod 777 "$ROOM"; both git_outside; }

@test "a state directory on overlayfs: overlay says where the upper may live, auto copies (trap 6)" {
    needs_root
    mkdir -p o/l o/u o/w merged
    mount -t overlay o -o "lowerdir=$ROOM/o/l,upperdir=$ROOM/o/u,workdir=$ROOM/o/w" merged || skip "NO OVERLAY HERE"
    mounted="$ROOM/merged"
    export HOLDFAST_DIR="$ROOM/merged/state"
    hp -q plan new p
    expect 4 hp plan add p s T --strategy overlay
    says "not supported as upperdir"
    run hp --json plan add p s T
    is_json '.strategy == "copy" and (.why | contains("not supported as upperdir"))'
    # a target on overlayfs is fine
    export HOLDFAST_DIR="$ROOM/state"
    mkdir merged/T; echo o >merged/T/f
    hp -q plan new p
    hp -q plan add p s merged/T --strategy overlay
    inside 'echo n >merged/T/f'
    [ "$(cat merged/T/f)" = o ]
}

third_level() {
    needs_overlay; own T; chmod 777 "$ROOM"
    plan_over T
    # a sandbox in a sandbox works, a third is one too many; both directories of state are outside
    bin=$([ "$as_user" = 1 ] && echo "$ROOM/holdfast" || echo "$HOLDFAST")
    inside '
        export HOLDFAST_DIR=$2/state2
        $1 -q plan new q; $1 -q plan add q s T --strategy overlay
        $1 -q plan enter q -- sh -c "
            echo two >T/two
            export HOLDFAST_DIR=$2/state3
            $1 -q plan new r; $1 plan add r s T --strategy overlay 2>$2/third; echo \$? >$2/status; $1 plan add r s T 2>$2/auto"
        [ ! -e T/two ]' "$bin" "$ROOM"
    [ "$(cat status)" = 4 ]
    grep -q 'stacking depth.*--strategy copy$' third || { cat third; false; }
    grep -q copy auto
}
@test "a third level of sandboxes is refused with the reason, and auto copies (trap 6)" { both third_level; }

@test "without user namespaces an ordinary user gets a copy, and the reason and remedy are said" {
    needs_root
    plan_as_user
    echo o >T/f; chown -R 65534:65534 T
    run "$HELPERS/helper-userns" --last setpriv --reuid=65534 --regid=65534 --clear-groups sh -ec '
        ./holdfast -q plan new p
        ./holdfast plan add p s T --strategy overlay && exit 9
        ./holdfast --json plan add p s T
        ./holdfast -q plan enter p -- sh -c "echo inside >$(./holdfast plan path p s)/f"
        (cd T && ../holdfast -q plan enter p -- sh -c "pwd; echo cwd >>f")
        cat T/f; ./holdfast -q plan commit p'
    [ "$status" -ne 77 ] || skip "THE LIMIT CANNOT BE LOWERED HERE"
    [ "$status" -eq 0 ] || { echo "$output"; false; }
    says "unshare"; says "max_user_namespaces is 0"
    says '"strategy":"copy"'
    [ "${lines[-1]}" = o ]
    [ "$(tr '\n' ' ' <T/f)" = 'inside cwd ' ]
}

no_overlay_then() {
    local holdfast=$HOLDFAST
    [ "$as_user" = 0 ] || holdfast=$ROOM/holdfast
    cp "$HELPERS/helper-nouserns" . # it may stand where that user cannot read, too
    echo o >T/f; own T
    run as ./helper-nouserns "$holdfast" plan enter p --in T -- sh -c 'cd "$0"; pwd; cat f' "$ROOM/T"
    [ "$status" -ne 77 ] || skip "NO SECCOMP FILTERS HERE"
    [ "$status" -eq 0 ] || { echo "$output"; false; }
    run hp --json plan show p
    is_json '.sandboxes[0] | (.strategy == "copy" or .strategy == "clone") and (.why | test("no overlay"))'
}
@test "enter --in where overlay cannot be mounted: the next strategy, and why" {
    [ "$(id -u)" != 0 ] || plan_as_user
    no_overlay_then
}

@test "root without user namespaces: a mount namespace alone, without CAP_SYS_ADMIN, invisible outside" {
    needs_root
    echo o >T/f
    limit=$(cat /proc/sys/user/max_user_namespaces)
    # a filter that refuses CLONE_NEWUSER stands for the sysctl, which is the whole machine's
    run "$HELPERS/helper-nouserns" "$HOLDFAST" -q plan new p
    [ "$status" -ne 77 ] || skip "NO SECCOMP FILTERS HERE"
    "$HELPERS/helper-nouserns" "$HOLDFAST" plan add p s T --strategy overlay
    run "$HELPERS/helper-nouserns" "$HOLDFAST" plan enter p -- sh -c '
        echo n >T/f; mkdir T/d; grep -c " $PWD/T " /proc/self/mountinfo >in
        umount T 2>/dev/null && echo escaped
        { echo x >/proc/1/root$PWD/T/f; } 2>/dev/null
        sed -n "s/^CapEff:[ \t]*//p" /proc/self/status >caps'
    [ "$status" -eq 0 ] || { echo "$output"; false; }
    says "no user namespace"
    [[ "$output" != *escaped* ]]
    [ "$(cat in)" = 1 ] && ! grep -q " $ROOM/T " /proc/self/mountinfo
    [ $((0x$(cat caps) >> 21 & 1)) -eq 0 ]
    [ "$(cat T/f)" = o ]
    [ ! -e T/d ]
    [ "$(cat "$HOLDFAST_DIR/plans/p/s/s/u/f")" = n ]
    [ "$limit" = "$(cat /proc/sys/user/max_user_namespaces)" ]
    # entered again with user namespaces, and without
    [ "$(hp -q plan enter p -- cat T/f)" = n ]
    [ "$("$HELPERS/helper-nouserns" "$HOLDFAST" -q plan enter p -- cat T/f)" = n ]
    "$HELPERS/helper-nouserns" "$HOLDFAST" -q plan commit p
    [ "$(cat T/f)" = n ]
    [ -d T/d ]
}

@test "in an outer user namespace, as its root and as an ordinary user of it" {
    needs_root
    plan_as_user
    echo o >T/f; chown -R 65534:65534 T
    # root of a namespace that has one id only
    run as unshare -Ur sh -ec './holdfast -q plan new p; ./holdfast -q plan add p s T --strategy overlay
        ./holdfast -q plan enter p -- sh -c "echo n >T/f; mkdir T/d; mv T/d T/e"; ./holdfast --json plan show p'
    [ "$status" -eq 0 ] || { echo "$output"; false; }
    is_json '.dirty and .sandboxes[0].strategy == "overlay"'
    [ "$(cat T/f)" = o ]
    as unshare -Ur ./holdfast -q plan commit p
    [ "$(cat T/f)" = n ]
    [ -d T/e ]
    rm -rf state
    echo o >T/f
    # a user of a namespace with many
    chown -R 1000:1000 "$ROOM"
    run "$HELPERS/helper-userns" setpriv --reuid=1000 --regid=1000 --clear-groups sh -ec '
        ./holdfast -q plan new p; ./holdfast -q plan add p s T --strategy overlay
        ./holdfast -q plan enter p -- sh -c "echo n >T/f"; cat T/f; ./holdfast -q plan commit p'
    [ "$status" -eq 0 ] || { echo "$output"; false; }
    [ "${lines[-1]}" = o ]
    [ "$(cat T/f)" = n ]
}

@test "in a chroot: a clear message with the way out, and auto copies" {
    needs_root
    mkdir -p c/tmp c/proc c/dev c/T; echo o >c/T/f
    cp "$HOLDFAST" c/holdfast
    for lib in $(ldd "$HOLDFAST" /bin/sh /bin/cat | grep -o '/[^ )]*\.so[^ )]*' | sort -u); do
        mkdir -p "c$(dirname "$lib")"; cp -n "$lib" "c$lib"
    done
    mkdir -p c/bin; cp /bin/sh /bin/cat c/bin/
    mount -t proc proc c/proc || skip "NO /proc CAN BE MOUNTED"
    mounted="$ROOM/c/proc"
    mknod c/dev/null c 1 3 2>/dev/null || true
    for user in 0 65534; do
        mkdir -p "c/home$user"; chown "$user:$user" "c/home$user"; chmod 700 "c/home$user"
        rm -rf c/T; mkdir c/T; echo o >c/T/f; chown -R "$user:$user" c/T
        run env HOLDFAST_DIR="/home$user/state" chroot --userspec="$user:$user" c /bin/sh -c '
            /holdfast -q plan new p || exit 1
            /holdfast plan add p s /T --strategy overlay && exit 0
            [ $? -eq 4 ] || exit 8
            /holdfast plan add p s /T || exit 2
            echo n >"$(/holdfast plan path p s)/f" || exit 3
            [ "$(/bin/cat /T/f)" = o ] || exit 4
            /holdfast plan commit p || exit 5'
        # in a chroot that is a mount of its own root could have overlay; here it is none
        [ "$status" -eq 0 ] || { echo "$user: $output"; false; }
        says "copy"
        says "unshare"
        [ "$(cat c/T/f)" = n ]
    done
}

@test "targets that are not directories, not there, or too many" {
    hp -q plan new p
    touch file
    expect 4 hp plan add p s file
    expect 4 hp plan add p s missing
    expect 2 hp plan add p '' T
    expect 2 hp plan add p s T --strategy magic
    hp -q plan add p s T
    mkdir T2
    expect 1 hp plan add p s T2
    says "the plan has a sandbox with this name"
    expect 1 hp plan add p t T
    says "already has it"
    expect 1 hp plan add nowhere s T2
    says "'holdfast plan new nowhere' makes it"
    expect 1 hp plan add run:nowhere s T2
    says "'holdfast plan list' shows the plans"
    expect 1 hp plan new p
    says "CREATED"
    for i in $(seq 63); do mkdir "d$i"; hp -q plan add p "s$i" "d$i" --strategy overlay || skip "NO OVERLAY HERE"; done
    expect 1 hp plan add p one-more T2
    says "64"
    # and all of them at once
    inside 'for i in $(seq 63); do echo $i >d$i/f; done'
    [ -z "$(ls d1 d63 | grep -v :)" ]
    [ "$(cat "$HOLDFAST_DIR/plans/p/s/s63/u/f")" = 63 ]
}

# loop_disk KIND: a file system of that kind at $ROOM/disk
loop_disk() {
    [ "$(id -u)" = 0 ] || skip "mounting a loop device needs root"
    command -v "mkfs.$1" >/dev/null || skip "NO mkfs.$1 HERE"
    truncate -s 512M "$ROOM/image"; "mkfs.$1" -q "$ROOM/image" >/dev/null; mkdir "$ROOM/disk"
    mount -o loop "$ROOM/image" "$ROOM/disk" 2>/dev/null || skip "NO LOOP DEVICE OR NO $1 HERE"
    mounted=$ROOM/disk
}

@test "btrfs: a target that is a subvolume is cloned and committed, as root and as an ordinary user" {
    loop_disk btrfs
    local state blocks
    for as_user in 0 1; do
        rm -rf disk/state; [ "$as_user" = 0 ] || { plan_as_user; chmod 777 disk; }
        as btrfs subvolume create "disk/T$as_user" >/dev/null
        head -c 8M /dev/urandom >"disk/T$as_user/large"; echo a >"disk/T$as_user/f"; own "disk/T$as_user"
        state=$ROOM/disk/state$as_user
        hp --dir "$state" -q plan new p
        sync -f disk; blocks=$(df --output=used -k disk | tail -1)
        hp --dir "$state" -q plan add p s "disk/T$as_user" --strategy clone
        sync -f disk
        [ $(($(df --output=used -k disk | tail -1) - blocks)) -lt 4096 ] # the large file shares its blocks
        echo b >>"$(hp --dir "$state" plan path p s)/f"
        [ "$(cat "disk/T$as_user/f")" = a ]
        hp --dir "$state" -q plan commit p
        [ "$(cat "disk/T$as_user/f")" = $'a\nb' ]
        hp --dir "$state" -q plan rm p
    done
}

@test "a target that is read-only: its sandbox is not, and a commit names it and changes nothing" {
    needs_root
    mount -t tmpfs none T || skip "no tmpfs here"
    echo o >T/f; mount -o remount,ro T
    hp -q plan enter p --in T -- sh -c 'echo n >T/f; cat T/f' >out
    run hp plan commit p
    [ "$(cat T/f)" = o ] && kept=1
    umount T
    [ "$(cat out)" = n ]
    [ "$status" -eq 4 ]
    [ "$kept" = 1 ]
    says "$ROOM/T: Read-only"
}
