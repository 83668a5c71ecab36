# What the tree builds: headers that compile alone, installations, the wheel, builds that are the same everywhere. It takes minutes.
load ../helper

@test "every public header compiles alone, as C99 with gcc and clang and as C++" {
    for header in include/holdfast/*.h; do
        for cc in 'gcc -std=c99 -x c' 'clang -std=c99 -x c' 'g++ -x c++'; do
            printf '#include "holdfast/%s"\nextern int hf_not_empty;\n' "${header##*/}" |
                $cc -Iinclude -Wall -Wextra -Werror -pedantic -fsyntax-only - || { echo "$cc $header"; return 1; }
        done
    done
}

@test "every private header compiles alone" {
    for header in src/*/*.h src/*/*/*.h src/*/*/*/*.h; do
        layer=${header#src/} layer=${layer%%/*}
        printf '#include "hf/%s"\n' "${header#src/}" |
            gcc -D_GNU_SOURCE $(flags "$layer") -Wall -Wextra -Werror -fsyntax-only -x c - || return 1
    done
}

@test "a wheel carries the library and its supervisor, and installs without the network" {
    /usr/bin/python3 -c 'import setuptools, wheel, pip' || skip "no pip, setuptools, wheel"
    BUILD=$BUILD tools/wheel "$BATS_TEST_TMPDIR/wheel"
    /usr/bin/python3 -m pip install --quiet --no-index --no-deps --target "$BATS_TEST_TMPDIR/site" "$BATS_TEST_TMPDIR"/wheel/*.whl
    cd "$BATS_TEST_TMPDIR"
    run env -i HOME="$BATS_TEST_TMPDIR" PATH=/usr/bin:/bin PYTHONPATH="$BATS_TEST_TMPDIR/site" /usr/bin/python3 -c '
import holdfast, holdfast._library
assert holdfast._library.path.endswith("site/holdfast/lib/libholdfast.so.0")
assert holdfast.run("x", ["true"]).wait(60).succeeded
with holdfast.lock("y"):
    print("works")'
    [ "$output" = works ] || { echo "$output"; return 1; }
}

@test "the Python module and the examples are typed: mypy finds nothing" {
    command -v mypy >/dev/null || skip "no mypy"
    (cd bindings/python && mypy --strict --cache-dir "$BATS_TEST_TMPDIR" --python-version 3.9 -p holdfast)
    MYPYPATH=bindings/python:examples/amplihack mypy --strict --cache-dir "$BATS_TEST_TMPDIR" --python-version 3.9 examples/*/*.py
}

@test "installed into a prefix, a program builds against it by pkg-config, shared and static" {
    DESTDIR="$BATS_TEST_TMPDIR/root" meson install -C "$BUILD" --no-rebuild >/dev/null
    prefix=$(find "$BATS_TEST_TMPDIR/root" -name holdfast.pc -printf '%h\n')
    export PKG_CONFIG_PATH=$prefix PKG_CONFIG_SYSROOT_DIR="$BATS_TEST_TMPDIR/root"
    cat >"$BATS_TEST_TMPDIR/use.c" <<'C'
#include <holdfast/holdfast.h>
#include <stdio.h>
int main(void)
{
	struct hf_err err = HF_ERR_INIT;
	struct hf_proc_id id;
	char text[HF_PROC_TEXT_MAX];
	if (hf_proc_self(&id, &err) < 0)
		return 1;
	hf_proc_format(&id, text);
	return puts(text) < 0;
}
C
    # shellcheck disable=SC2046
    gcc "$BATS_TEST_TMPDIR/use.c" -o "$BATS_TEST_TMPDIR/use" $(pkg-config --cflags --libs holdfast)
    LD_LIBRARY_PATH=$(dirname "$prefix") "$BATS_TEST_TMPDIR/use" | grep -q '^p1:'
    gcc "$BATS_TEST_TMPDIR/use.c" -o "$BATS_TEST_TMPDIR/use-static" $(pkg-config --cflags holdfast) \
        "$(dirname "$prefix")/libholdfast.a" $(pkg-config --static --libs-only-l holdfast | sed s/-lholdfast//)
    "$BATS_TEST_TMPDIR/use-static" | grep -q '^p1:'
    for page in docs/man/*; do
        [ -f "$(find "$BATS_TEST_TMPDIR/root" -path "*/man/man${page##*.}/${page##*/}")" ] || { echo "$page"; return 1; }
    done
    [ -f "$(find "$BATS_TEST_TMPDIR/root" -name hf_proc_open.3)" ]
}

# copy_tree DIR: what is under version control, or what a release holds
copy_tree() {
    mkdir -p "$1"
    cp -r Makefile README.md meson.build meson_options.txt src cli libexec include docs examples tools "$1/"
    rm -rf "$1/src/layer"
}

@test "two builds in two directories are the same, byte for byte, debugging information included" {
    # One of them is the build under test, which has the tests in addition.
    tree=$BATS_TEST_TMPDIR/two/deeper/tree
    copy_tree "$tree"
    CC=gcc meson setup "$tree/build/gcc" "$tree" -Dtests=false >/dev/null
    ninja -C "$tree/build/gcc" >/dev/null
    for file in cli/holdfast libexec/holdfast-supervise src/libholdfast.so src/libholdfast.a; do
        cmp "$BUILD/$file" "$tree/build/gcc/$file"
    done
    run ! grep -qF "$tree" "$tree/build/gcc/cli/holdfast"
}

@test "the lines of the README that install Holdfast work as printed; make install strips, a static program is static, make uninstall takes everything back" {
    copy_tree "$BATS_TEST_TMPDIR/tree"
    cd "$BATS_TEST_TMPDIR/tree"
    export HOME=$BATS_TEST_TMPDIR/home
    prefix=$HOME/.local
    mkdir "$HOME"
    meson setup build/release --buildtype=release -Dwerror=true -Dtests=false -Dstatic=true --prefix "$prefix" >"$BATS_TEST_TMPDIR/setup" 2>&1
    run ! grep -A2 WARNING "$BATS_TEST_TMPDIR/setup"
    sed -n '/^```sh$/,/^```$/p' README.md | grep -v '^```' >"$BATS_TEST_TMPDIR/install.sh"
    grep -q '^make install PREFIX=~/.local ' "$BATS_TEST_TMPDIR/install.sh"
    PATH="$prefix/bin:$PATH" run env -u BUILD bash "$BATS_TEST_TMPDIR/install.sh"
    # The last line is 'holdfast doctor', which may find something to warn about.
    [[ "$status" -le 1 && "$output" == *"The branch, green at every commit"*"installed: $prefix/bin/holdfast"* ]] || { echo "$output"; return 1; }
    make --no-print-directory install BUILD=build/release PREFIX="$prefix" >"$BATS_TEST_TMPDIR/log" 2>&1 || { cat "$BATS_TEST_TMPDIR/log"; return 1; }
    # It reports what was built and where it is, in two lines.
    [ "$(wc -l <"$BATS_TEST_TMPDIR/log")" = 2 ] || { cat "$BATS_TEST_TMPDIR/log"; return 1; }
    [ "$(tail -n 1 "$BATS_TEST_TMPDIR/log")" = "installed: $prefix/bin/holdfast" ]
    [ "$(find "$prefix" -path '*/man3/*' -type f | wc -l)" = "$(find build/release/docs/man3 -name '*.3' | wc -l)" ]
    [ -f "$prefix/share/man/man3/hf_lock_acquire.3" ]
    [ "$("$prefix/bin/holdfast" lock run x -- echo yes)" = yes ]
    # In the background: the installed program starts the installed supervisor.
    "$prefix/bin/holdfast" run x --detach -- sleep 60
    supervisor=$("$prefix/bin/holdfast" ps x --json | jq '.sessions[0].supervisor.pid')
    [ "$(readlink "/proc/$supervisor/exe")" = "$prefix/libexec/holdfast-supervise" ]
    "$prefix/bin/holdfast" stop x --grace 0
    # A prefix that was moved still finds it, and so does a program in another place by the path that was compiled in.
    cp "$prefix/bin/holdfast" "$BATS_TEST_TMPDIR/alone"
    "$BATS_TEST_TMPDIR/alone" run x --detach -- true
    run readelf -S "$prefix/bin/holdfast"
    [[ "$output" != *.symtab* && "$output" != *.interp* ]] || { echo "$output"; cat "$BATS_TEST_TMPDIR/log"; return 1; }
    [ "$(find "$prefix" -type f | wc -l)" -gt 50 ]
    # It knows where it installed, also without PREFIX.
    run make -s uninstall BUILD=build/release
    [ "$output" = "removed what 'make install' put below $prefix" ]
    run find "$prefix" -path "$prefix/state" -prune -o ! -type d -print
    [ -z "$output" ] || { echo "left: $output"; return 1; }
}

