# tests/tree/helper.bash - where the tree is, which layers it has, and what each of them may include.
: "${BUILD:?a build directory}"
bats_require_minimum_version 1.5.0

setup() {
    TOP=$(cd "${BASH_SOURCE[0]%/*}/../.." && pwd)
    cd "$TOP" || return 1
    export HOLDFAST_DIR="$BATS_TEST_TMPDIR/state"
    layers='base: sys:base name:base,sys proc:base,sys journal:base,sys lock:base,sys,name,proc,journal exec:base,sys,name,proc,journal run:base,sys,name,proc,journal,lock,exec file:base,sys,name,proc,journal,lock,exec plan:base,sys,name,proc,journal,lock,exec tx:base,sys,name,proc,journal,lock,exec,run,file,plan hook:base,sys,name,proc,journal,lock,exec,run,file,plan view:base,sys,name,proc,journal,lock,exec,run,file,plan,tx,hook'
}

# flags LAYER: the include directories that the build gives it
flags() {
    local spec below
    for spec in $layers; do
        [ "${spec%%:*}" = "$1" ] || continue
        printf -- '-I%s ' "$BUILD/src/layer/$1"
        for below in ${spec#*:}; do
            for below in ${below//,/ }; do printf -- '-I%s ' "$BUILD/src/layer/$below"; done
        done
    done
}

# Goes into a repository whose tests pass; bin/claude is an agent that makes one file and commits nothing.
repository_with_agent() {
    mkdir "$BATS_TEST_TMPDIR/bin" "$BATS_TEST_TMPDIR/app"
    printf '#!/bin/sh\nset -e\n[ "$1" = -p ]\necho "$2" >"$(echo "$2" | tr -d " ")"\n' >"$BATS_TEST_TMPDIR/bin/claude"
    chmod +x "$BATS_TEST_TMPDIR/bin/claude"
    cd "$BATS_TEST_TMPDIR/app"
    export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
    git init -q -b main .
    git config user.name u
    git config user.email u@example.org
    printf 'test:\n\ttest -f Makefile\ndeploy:\n\techo deployed >../deployed\n' >Makefile
    git add Makefile
    git commit -qm first
}
