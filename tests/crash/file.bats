# Killed at every system call that changes something: the file is old or new, and the next edit leaves nothing behind.
load ../cli/helper
load helper

old_or_new() { # old_or_new FILE OLD NEW
    local now
    now=$(cat "$1")
    [ "$now" = "$2" ] || [ "$now" = "$3" ] || { echo "neither old nor new: $now"; return 1; }
}

# The next edit gets the lock at once, and cleans up.
next_works() {
    expect 0 hf file edit f.md -n -- echo next
    [ "$(cat f.md)" = next ]
    [ -z "$(find . -name '.*.tmp')" ] || { find . -name '.*.tmp'; return 1; }
    [ -z "$(find . -maxdepth 1 -links +1 -type f)" ]
}

new=$'old\n<!-- holdfast:x:start -->\nnew\n<!-- holdfast:x:end -->'

one_file() { echo old >f.md; }

block_is_whole() {
    old_or_new f.md old "$new"
    next_works
}

@test "kill at every call of a block edit: old or new, nothing left after the next edit (L9)" {
    require_strace
    hf journal emit note text=warm
    each_point one_file block_is_whole file block f.md x --text new
    hf file block f.md x --text new
    [ "$(cat f.md)" = "$new" ]
}

file_and_backup() {
    rm -f f.md*
    echo old >f.md
    echo older >f.md.~1~
}

backups_are_right() {
    local landed
    landed=$(cat f.md)
    old_or_new f.md old new
    next_works
    if [ "$landed" = new ]; then
        [ "$(cat f.md.~1~ f.md.~2~ | paste -sd' ')" = "old older" ]
    else
        [ "$(cat f.md.~1~)" = older ] && [ ! -e f.md.~2~ ]
    fi
}

@test "kill at every call of an edit with a backup: the backups are right, too (L9)" {
    require_strace
    hf journal emit note text=warm
    each_point file_and_backup backups_are_right file edit f.md --backup 2 -- echo new
}
