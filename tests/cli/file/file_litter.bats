# No litter: the lock file beside a shared file is made only where tools or users need it; git does not see it.
load ../file_helper

holds='touch held; until [ -e go ]; do sleep 0.02; done'

@test "litter: edit, block and with leave nothing beside the file; --sidecar does, and then it is used without it, too" {
    mkdir d
    cd d
    expect 0 hf file edit f --create -- echo new
    expect 0 hf file block f rules --text one
    expect 0 hf file with f -- true
    [ "$(ls -A)" = f ]
    expect 0 hf file edit f --sidecar -- echo newer
    [ "$(ls -A)" = $'.f.lock\nf' ]
    expect 0 hf file with f -- bash -c '! flock -n .f.lock true'
}

@test "litter: with --sidecar and without it, processes exclude each other both ways (L1)" {
    for pair in '--sidecar ' ' --sidecar' ' '; do
        rm -f held go .f.lock
        spawn "$HOLDFAST" file with f ${pair% *} -- bash -c "$holds"
        wait_until 10 test -e held
        expect 1 hf file edit f --create ${pair#* } -n -- echo new
        says "already held"
        touch go
        wait "$spawned_pid"
        [ ! -e f ]
    done
}

@test "litter: a lock file that another tool makes while an edit works is taken before the commit: nothing is lost (L1)" {
    echo 1 >f
    spawn "$HOLDFAST" file edit f -w 20 --deadline 20s -- bash -c 'n=$(cat); echo run >>runs; touch reads; until [ -e write ]; do sleep 0.02; done; echo $((n + 1))'
    edit=$spawned_pid
    wait_until 10 test -e reads
    # It read 1. Now a tool locks, and reads 1, too.
    spawn flock .f.lock bash -c 'n=$(cat f); touch locked; until [ -e go ]; do sleep 0.02; done; echo $((n + 10)) >f'
    wait_until 10 test -e locked
    touch write
    sleep 0.3
    [ "$(cat f)" = 1 ]
    touch go
    wait "$edit"
    [ "$(cat f)" = 12 ]
    [ "$(wc -l <runs)" -eq 2 ]
}

@test "litter: where other users may change the file the lock file is made by itself" {
    mkdir open
    chmod 777 open
    expect 0 hf file edit open/f --create -- echo new
    [ -e open/.f.lock ]
    mkdir closed
    touch closed/f
    chmod 666 closed/f
    expect 0 hf file edit closed/f -- echo new
    [ -e closed/.f.lock ]
}

@test "litter: in a git work tree a kept lock file is in info/exclude, once; where there is none nothing is made" {
    command -v git >/dev/null || skip "no git"
    git init -q repo
    mkdir repo/docs
    printf 'no newline' >repo/.git/info/exclude
    for i in 1 2; do expect 0 hf file edit "repo/docs/a [1].md" --create --sidecar -- echo $i; done
    expect 0 hf file edit repo/b --create --sidecar -- echo b
    git -C repo status --porcelain
    [ "$(git -C repo status --porcelain --untracked-files=all)" = $'?? b\n?? "docs/a [1].md"' ]
    [ "$(wc -l <repo/.git/info/exclude)" -eq 3 ]
    echo '.*.lock' >repo/.gitignore
    expect 0 hf file edit repo/c --create --sidecar -- echo c
    [ "$(wc -l <repo/.git/info/exclude)" -eq 3 ]
    expect 0 hf file edit f --create --sidecar -- echo f
    [ "$(cd repo && git rev-parse --is-inside-work-tree)" = true ]
}

@test "create: --mode is the mode of a new file, whatever the umask says, and of no other; bad ones are usage errors" {
    (umask 077; expect 0 hf file edit a --create --mode 0644 -- echo a)
    [ "$(stat -c %a a)" = 644 ]
    (umask 0; expect 0 hf file edit b --create --mode 600 -- echo b)
    [ "$(stat -c %a b)" = 600 ]
    expect 0 hf file edit a --create --mode 0600 -- echo again
    [ "$(stat -c %a a)" = 644 ]
    expect 0 hf file block c.md rules --create --mode 0640 --text x
    [ "$(stat -c %a c.md)" = 640 ]
    for bad in 0 x 0689 77777 ''; do expect 2 hf file edit d --create --mode "$bad" -- echo d; done
    expect 2 hf file edit a --mode 0600 -- echo a
    [ ! -e d ]
}
