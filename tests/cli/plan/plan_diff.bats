#!/usr/bin/env bats
# plan diff in its forms, what counts as a change, and how plans are listed.
load ../helper
load ../plan_helper

setup() { plan_setup; }
teardown() { plan_teardown; }

patch_is_complete() {
    needs_overlay
    mkdir T/d; seq 20 >T/text; seq 3 >T/gone; echo x >T/mode; ln -s text T/link; ln -s text T/was; echo y >'T/two words'; echo z >$'T/line\nbreak'
    cp -a T by_patch; own T; plan_over T
    inside 'cd T; sed -i s/7/seven/ text; rm gone; chmod 755 mode; ln -sf mode link; rm was; echo file >was
        echo more >>"two words"; echo more >>"$1"; mkdir new; echo n >new/n; : >new/empty; ln -s n new/l' $'line\nbreak'
    hp plan diff p --patch >patch
    (cd by_patch && git apply ../patch)
    hp -q plan commit p
    # git knows 644 and 755 only, as these are.
    [ "$(tree T)" = "$(tree by_patch)" ]
}
@test "plan diff --patch: git apply makes of it what the commit makes, links, modes and odd names included" { both patch_is_complete; }

@test "plan diff --patch: what the format has no lines for is said in a comment; binary files are named" {
    needs_overlay; mkdir T/d; echo x >T/touched; plan_over T
    inside 'chmod 700 T/d; touch -d 2001-01-01 T/touched; printf "\0\1" >T/bin'
    run hp plan diff p -p
    says '# d: mode 040755 -> 040700'; says '# touched: only its times, owner or attributes'; says 'Binary files /dev/null and b/bin differ'
}

@test "plan diff --sandbox: of one alone, in every form; one that is not there is an error" {
    needs_overlay; mkdir A B; echo a >A/f; echo b >B/f; plan_over A B
    inside 'echo 1 >>A/f; echo 2 >>B/f; echo 3 >B/g'
    [ "$(hp plan diff p --name-only --sandbox s2)" = $'f\ng' ]
    [ "$(hp plan diff p --json --sandbox s1 | jq -r '.changes[] | .sandbox + .path')" = s1f ]
    run hp plan diff p --patch; says '# s1'; says '# s2'
    run hp plan diff p --patch --sandbox s2; says '+2'; run ! grep -qx '+1' <<<"$output"
    expect 1 hp plan diff p --sandbox nope; says "nope"
    run hp plan diff p --stat; says '1 added, 2 changed, 0 deleted, 0 other, +6 bytes'
}

made_anew() {
    needs_overlay; mkdir T/d; seq 5 >T/same; seq 5 >T/other; seq 5 >T/d/same; seq 5 >T/d/gone; touch -d 2001-01-01 T/same T/d/same T/other; own T
    plan_over T
    before=$(stat -c '%i %Y' T/same)
    inside 'cd T; rm same; seq 5 >same; rm other; seq 6 >other; rm -r d; mkdir d; seq 5 >d/same; seq 5 >d/new'
    [ "$(hp plan diff p --name-only | tr '\n' ' ')" = 'd/gone d/new other ' ]
    hp -q plan commit p
    [ "$(stat -c '%i %Y' T/same)" = "$before" ]
    [ "$(ls T/d | tr '\n' ' ')$(cat T/other | wc -l)" = 'new same 6' ]
}
@test "a file that is deleted and made anew with the same content is no change (trap 42)" { both made_anew; }

made_anew_on_both_sides() {
    needs_overlay; seq 5 >T/same; echo old >T/f; own T; plan_over T
    inside 'cd T; rm same; seq 5 >same; echo new >f'
    echo user >T/same # not the sandbox's business any more: it changed nothing there
    run hp plan commit p
    # The sandbox saw the old content, so what it made anew may be meant: the user decides.
    [ "$status" -eq 1 ]; says 'same'
    [ "$(cat T/f)" = old ]
}
@test "a file made anew is a conflict where the target's content changed meanwhile" { both made_anew_on_both_sides; }

only_touched() {
    needs_overlay; echo x >T/f; touch -d 2002-02-02 T/f; own T; plan_over T
    inside 'touch -d 2003-03-03 T/f'
    [ "$(hp plan diff p --name-only)" = f ]
    hp -q plan commit p
    [ "$(date -r T/f +%Y)" = 2003 ]
}
@test "a file that got another time only lands for that time" { both only_touched; }

on_screen() { # on_screen COLUMNS WORDS...
    script -qec "stty cols $1 rows 24; '$HOLDFAST' ${*:2}" /dev/null </dev/null | tr -d '\r'
}

@test "plan diff --patch on a terminal: colours, through PAGER; PAGER=cat; a pager that ends early is no error" {
    needs_overlay; command -v script >/dev/null || skip "no script(1)"
    echo a >T/f; plan_over T; inside 'echo b >>T/f'
    PAGER="sed s/^/paged:/" TERM=xterm on_screen 80 plan diff p -p >shown
    grep -q '^paged:.*diff --git' shown
    grep -q $'\x1b\\[' shown
    PAGER=cat NO_COLOR=1 on_screen 80 plan diff p -p >shown
    grep -qx '+b' shown; run ! grep -q $'\x1b' shown
    seq 100000 >T/big
    inside 'seq 200000 >T/big; seq 1000 >T/z'
    PAGER="head -n 1" timeout 20 script -qec "'$HOLDFAST' plan diff p -p" /dev/null </dev/null >shown
    [ "$(wc -l <shown)" -eq 1 ]
    # not a terminal: no pager, no colours
    [ "$(PAGER='sed s/^/paged:/' hp plan diff p -p | grep -c paged || true)" -eq 0 ]
}

@test "plan list and plan show: the size of the change, session and reason; lines fit the screen" {
    needs_overlay; command -v script >/dev/null || skip "no script(1)"
    hp -q plan new a-plan-with-a-rather-long-name-that-would-fill-half-of-the-screen --session the-session-it-belongs-to
    mkdir A B C; plan_over A B C; inside 'echo 12345 >A/f; echo 12345 >B/g; ln -s x B/l'
    on_screen 80 plan list | sed 's/\x1b\[[0-9;]*m//g' >shown
    [ "$(LC_ALL=C.UTF-8 wc -L <shown)" -le 80 ]
    grep -qE '^p +ACTIVE +[^ ]+ +dirty +3 +0K +s1 \(overlay\)' shown
    run hp plan list; says 'session the-session-it-belongs-to'
    run hp plan show p; says 'change    1 file, 6 bytes'; says 'change    2 files, 6 bytes'
    run hp plan show p --json
    is_json '[.sandboxes[] | .changed_files] == [1, 2, 0] and .sandboxes[1].changed_bytes == 6'
    hp -q plan commit p
    run hp plan show p --json; is_json '[.sandboxes[] | .changed_files] == [0, 0, 0]'
    mkdir K; hp -q plan new k; hp -q plan add k s K --strategy copy; echo x >"$(hp plan path k s)/f"
    run hp plan show k --json; is_json '.sandboxes[0].changed_files == null'
    run hp plan show k; says "not counted; see 'holdfast plan diff --stat k'"
}
