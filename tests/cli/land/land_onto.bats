#!/usr/bin/env bats
# Landing on git: the commits of an agent go onto new commits of the branch as git rebase would put them there.
load ../helper
load ../land_helper

setup() { land_setup; }

# change SEED COMMITS: random commits in the current work tree
change() {
    local i file kind
    RANDOM=$1
    for i in $(seq "$2"); do
        for _ in 1 2 3; do
            git ls-files | grep -v gitignore >"$BATS_TEST_TMPDIR/files" || echo none >"$BATS_TEST_TMPDIR/files"
            file=$(sed -n "$((RANDOM % $(wc -l <"$BATS_TEST_TMPDIR/files") + 1))p" "$BATS_TEST_TMPDIR/files")
            kind=$((RANDOM % 9))
            [ -e "$file" ] || kind=5
            case $kind in
            0) git rm -qf "$file" ;;
            1) mkdir -p "d$((RANDOM % 3))" && git mv "$file" "d$((RANDOM % 3))/m$RANDOM" 2>/dev/null || : ;;
            2) [ -L "$file" ] || chmod "$((RANDOM % 2 ? 755 : 644))" "$file" ;;
            3) ln -sf "to$RANDOM" "link$((RANDOM % 4))" ;;
            4) head -c 300 /dev/zero | tr '\0' "\\$((RANDOM % 2))" >"binary$((RANDOM % 3))" ;;
            5) seq "$RANDOM" $((RANDOM % 9 + RANDOM)) | head -n 30 >"new $RANDOM" ;;
            *) [ -L "$file" ] || sed -i "$((RANDOM % 20 + 1))s/\$/ $1/" "$file" ;;
            esac
            git add -A
        done
        git commit -q --allow-empty -m "$1: $i"
    done
}

@test "L14: random commits on random commits: the same trees as git rebase makes, or a conflict in the same files" {
    local seed landed=0 conflicts=0 expected
    # Twelve histories, and more until both ends have been seen twice.
    for seed in $(seq 11 70); do
        [ "$seed" -lt 23 ] || [ "$landed" -lt 2 ] || [ "$conflicts" -lt 2 ] || break
        git clone -q . ../peer
        hl -q land begin "s$seed" .
        hl -q plan enter "s$seed" -- bash -c "$(declare -f change); change 9$seed 2 >/dev/null; git push -q '$BATS_TEST_TMPDIR/peer' HEAD:refs/heads/agent"
        change "$seed" 2 >/dev/null
        git -C ../peer pull -q
        git -C ../peer checkout -q agent
        if git -C ../peer rebase -q main >/dev/null 2>&1; then
            landed=$((landed + 1))
            expected=$(git -C ../peer log --reverse --format='%T %s' main..agent)
            expect 0 hl land "s$seed"
            [ "$(git log --reverse --format="%T %s" "$(git -C ../peer rev-parse main)..main")" = "$expected" ] || { echo "seed $seed"; git log --stat --reverse --format="%T %s" "$(git -C ../peer rev-parse main)..main"; git -C ../peer log --reverse --stat --format="%T %s" main..agent; return 1; }
        else
            conflicts=$((conflicts + 1))
            expected=$(git -C ../peer diff --name-only --diff-filter=U | sort)
            expect 1 hl -q --json land "s$seed"
            [ "$(jq -r '.paths[].path' <<<"$output" | sort)" = "$expected" ] || { echo "$output" "$expected"; return 1; }
            hl -q land drop "s$seed"
        fi
        rm -rf ../peer
        git rm -rqf . && make_repository . && git add -A && git commit -q --allow-empty -m again
        clean
    done
    echo "$landed landed, $conflicts conflicts"
    [ "$landed" -ge 2 ]
    [ "$conflicts" -ge 2 ]
}

@test "L14: author, date, encoding and text of a commit stay; an empty commit stays; what the branch has already is dropped" {
    hl -q land begin one .
    seq 20 >new
    git add new
    git commit -qm 'the same'
    GIT_AUTHOR_NAME='A. N. Agent' GIT_AUTHOR_EMAIL='<a@example.org' GIT_AUTHOR_DATE='1700000000 -0730' hl -q plan enter one -- sh -ec '
        seq 20 >new; git add new; git commit -qm same
        printf "caf\351\n\n\ntext  \n\n" >../message; echo 1 >>b
        git -c i18n.commitEncoding=ISO-8859-1 commit -qa --cleanup=verbatim -F ../message
        git commit -q --allow-empty -m empty'
    expect 0 hl land one
    [ "$(git log --format=%s -3 main | paste -sd,)" = 'empty,café,the same' ]
    git cat-file commit main~ >../raw
    [ "$(sed -n 3p ../raw)" = 'author A. N. Agent <a@example.org> 1700000000 -0730' ]
    grep -qx 'encoding ISO-8859-1' ../raw
    sed '1,/^$/d' ../raw | cmp - ../message
    clean
}

@test "L14: where git knows no committer, the commit keeps its author" {
    hl -q land begin one .
    git commit -q --allow-empty -m user
    hl -q plan enter one -- sh -ec 'echo 1 >>b; git commit -qam agent --author="An Agent <a@example.org>"'
    git config --global --unset-all user.name
    git config --global --unset-all user.email
    git config --global user.useConfigOnly true
    expect 0 hl land one
    [ "$(git log -1 --format='%an %ae, %cn %ce')" = 'An Agent a@example.org, Holdfast holdfast@localhost' ]
}

@test "L14: the attributes of the branch decide how files are merged, and not the user's edits of .gitattributes" {
    printf 'a merge=union\n' >.gitattributes
    git add .gitattributes
    git commit -qm union
    hl -q land begin one .
    hl -q land begin two .
    sed -i 5s/.*/user/ a
    git commit -qam user
    hl -q plan enter one -- sed -i 5s/.*/agent/ a
    expect 0 hl land one
    grep -qx user a
    grep -qx agent a
    # On the branch they are gone, in the work tree they are back.
    git rm -q .gitattributes
    sed -i 9s/.*/user/ a
    git commit -qam 'no union'
    printf 'a merge=union\n' >.gitattributes
    hl -q plan enter two -- sed -i 9s/.*/agent/ a
    expect 1 hl -q --json land two
    is_json '.paths[0].path == "a"'
}
