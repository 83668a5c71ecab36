# The tree itself: layers, headers, symbols, documents, README, installation.
: "${BUILD:?a build directory}"
bats_require_minimum_version 1.5.0

setup() {
    TOP=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
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

@test "the layers named here are the layers of the build" {
    [ "$(grep -oE "'name': '[a-z]+', 'below': \[[^]]*\]" src/meson.build |
        sed -E "s/'name': '([a-z]+)', 'below': \[(.*)\]/\1:\2/; s/[' ]//g" | paste -sd' ')" = "$layers" ]
}

@test "no assertion of a test stands left of &&, where the shell lets it fail in silence" {
    run awk '/^@test/ { inside = 1 } /^}/ { inside = 0 }
        inside && /^ +(\[|\[\[|is_[a-z]+) .* && (\[|is_)/ && !/\|\|/ { print FILENAME ":" FNR ": " $0 }' tests/*/*.bats tests/*/*/*.bats
    [ -z "$output" ] || { echo "$output"; return 1; }
}

@test "an include of a higher or a sibling layer does not compile" {
    for spec in $layers; do
        layer=${spec%%:*} below=",${spec#*:},"
        for other in $layers; do
            other=${other%%:*}
            [ "$other" != "$layer" ] || continue
            for header in "$BUILD/src/layer/$other/holdfast/"*.h "src/$other/"*.h "src/$other/"*/*.h "src/$other/"*/*/*.h; do
                [ -e "$header" ] || continue
                case $header in */holdfast/*) name=holdfast/${header##*/} ;; *) name=hf/${header#src/} ;; esac
                if echo "#include \"$name\"" | gcc -D_GNU_SOURCE $(flags "$layer") -fsyntax-only -x c - 2>/dev/null; then
                    [[ "$below" == *",$other,"* ]] || { echo "$layer may include $name"; return 1; }
                else
                    [[ "$below" != *",$other,"* ]] || { echo "$layer may not include $name"; return 1; }
                fi
            done
        done
    done
}

@test "no include climbs out of its layer with .." {
    run grep -rnE '#include *"[^"]*\.\./' src cli include
    [ "$status" -eq 1 ]
}

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

@test "exported symbols, map and explained declarations are the same list" {
    nm -D --defined-only "$BUILD/src/libholdfast.so" | awk '$2 == "T" { sub(/@.*/, "", $3); print $3 }' | sort >"$BATS_TEST_TMPDIR/so"
    sed -nE 's/^\t(hf_[a-z0-9_]+);$/\1/p' src/holdfast.map | sort >"$BATS_TEST_TMPDIR/map"
    for header in include/holdfast/*.h; do /usr/bin/python3 tools/header-man.py "$header" --list; done >"$BATS_TEST_TMPDIR/list"
    run ! grep BARE "$BATS_TEST_TMPDIR/list"
    awk '{ print $1 }' "$BATS_TEST_TMPDIR/list" | sort >"$BATS_TEST_TMPDIR/headers"
    diff "$BATS_TEST_TMPDIR/so" "$BATS_TEST_TMPDIR/map"
    diff "$BATS_TEST_TMPDIR/map" "$BATS_TEST_TMPDIR/headers"
}

@test "every exported symbol has a manual page" {
    while read -r symbol; do
        [ -f "$BUILD/docs/man3/$symbol.3" ] || { echo "$symbol"; return 1; }
    done < <(sed -nE 's/^\t(hf_[a-z0-9_]+);$/\1/p' src/holdfast.map)
}

@test "manual pages have no errors and no warnings" {
    for page in "$BUILD"/docs/man3/holdfast_*.3 docs/man/*.1; do
        run mandoc -T lint -W warning "$page"
        [ "$status" -eq 0 ] || { echo "$output"; return 1; }
    done
}

@test "the table of errors in the manual, the Python exceptions and the header agree" {
    for name in $(grep -oE '^	X\([A-Z_]+' include/holdfast/err.h | cut -c4-); do
        grep -q "^.It Dv HF_E_$name$" "$BUILD/docs/man3/holdfast_err.3" || { echo "$name"; return 1; }
    done
    diff "$BUILD/docs/errors.py" bindings/python/holdfast/errors.py || { echo "cp $BUILD/docs/errors.py bindings/python/holdfast/errors.py"; return 1; }
}

@test "the Python module has the structs, constants and functions of the headers" {
    /usr/bin/python3 tools/python-abi.py | diff - bindings/python/holdfast/_abi.py || { echo "run: tools/python-abi.py --write"; return 1; }
}

@test "the Python of the README works as it stands" {
    sed -n '/^```python$/,/^```$/p' README.md | grep -v '^```' >"$BATS_TEST_TMPDIR/readme.py"
    [ "$(wc -l <"$BATS_TEST_TMPDIR/readme.py")" -ge 10 ]
    cd "$BATS_TEST_TMPDIR"
    mkdir app
    HOLDFAST_LIBRARY=$BUILD/src/libholdfast.so.0 HOLDFAST_LIBEXEC=$BUILD/libexec PYTHONPATH=$TOP/bindings/python PYTHONDONTWRITEBYTECODE=1 \
        timeout 60 /usr/bin/python3 readme.py
    [ "$(cat app/file)" = three ]
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

@test "every symbol of libholdfast.a begins with hf_" {
    run bash -c "nm --defined-only --extern-only '$BUILD/src/libholdfast.a' 2>/dev/null | awk 'NF == 3 && \$3 !~ /^(hf_|__odr_asan)/ { print \$3 }'"
    [ -z "$output" ] || { echo "$output"; return 1; }
}

@test "docs/FORMATS.md lists exactly the events of the table, with their fields and meaning" {
    "$BUILD/cli/holdfast" journal events --json |
        jq -r '.events[] | "| `" + .event + "` | " +
            ((if .needs_name then "name, " else "" end) + ([.fields[] | .key + (if .required then "!" else "" end)] | join(" "))) +
            " | " + .summary + " |"' >"$BATS_TEST_TMPDIR/events"
    diff "$BATS_TEST_TMPDIR/events" <(sed -n '/^## Events/,$p' docs/FORMATS.md | grep '^| `')
}

@test "every law has its section in docs/INVARIANTS.md, and every proof named there is the whole title of a test" {
    for law in L1 L2 L3 L4 L5 L6 L7 L8 L9 L10 L11 L12 L13 L14; do grep -qE "^## $law " docs/INVARIANTS.md; done
    /usr/bin/python3 -B tests/tree/titles.py --check docs/INVARIANTS.md
    # A part of a title is none.
    sed -E 's/^(- `tests[^`]*`: .*).$/\1/' docs/INVARIANTS.md >"$BATS_TEST_TMPDIR/cut"
    run -1 /usr/bin/python3 -B tests/tree/titles.py --check "$BATS_TEST_TMPDIR/cut"
    [ "${#lines[@]}" -eq "$(grep -c '^- `tests' docs/INVARIANTS.md)" ]
}

@test "a test of stores that is given an unknown store or too many arguments runs nothing and fails" {
    for program in "$BUILD"/tests/store-*; do
        [ -f "$program" ] || continue
        run -2 "$program" nonsense:
        [[ "$output" == *"Bail out! nonsense:"* ]] || { echo "$output"; return 1; }
        run -2 "$program" local: local:
    done
}

@test "the commands of the README work as they stand" {
    sed -n '/^```sh$/,/^```$/p' README.md | grep -v '^```' >"$BATS_TEST_TMPDIR/readme.sh"
    [ "$(wc -l <"$BATS_TEST_TMPDIR/readme.sh")" -gt 15 ]
    cd "$BATS_TEST_TMPDIR"
    PATH="$BUILD/cli:$PATH" run timeout 60 bash -e readme.sh
    [ "$status" -eq 0 ] || { echo "$output"; return 1; }
}

@test "each verb of the CLI has its example in the README and its place in the manual" {
    "$BUILD/cli/holdfast" help | sed -nE 's/^  (lock|file|plan|land|journal|proc|name) ([a-z]+).*/\1 \2/p; s/^  (why|run|ps|stop|wait|logs|reap|doctor|version).*/\1/p' | sort -u >"$BATS_TEST_TMPDIR/verbs"
    [ "$(wc -l <"$BATS_TEST_TMPDIR/verbs")" -ge 32 ]
    while read -r verb; do
        grep -q "holdfast $verb" README.md || { echo "README: $verb"; return 1; }
        grep -qE "^\.It Cm $verb( |$)" docs/man/holdfast.1 || { echo "manual: $verb"; return 1; }
    done <"$BATS_TEST_TMPDIR/verbs"
}

@test "the version is the same in the build, the header and the changelog" {
    version=$(sed -nE "s/^    version: '([^']+)'.*/\1/p" meson.build)
    [ "$("$BUILD/cli/holdfast" version)" = "holdfast $version" ]
    grep -q "^## $version" CHANGELOG.md
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
    [ -f "$(find "$BATS_TEST_TMPDIR/root" -name holdfast.1)" ]
    [ -f "$(find "$BATS_TEST_TMPDIR/root" -name hf_proc_open.3)" ]
}

compiles() {
    printf '#include "hf/base/banned.h"\nint f(char *a, char *b);\nint f(char *a, char *b) { (void)a; (void)b; return (int)(long)%s; }\n' "$1" |
        gcc -D_GNU_SOURCE $(flags base) -fsyntax-only -x c -
}

@test "banned functions do not compile" {
    for call in 'strcpy(a, b)' 'atoi(a)' 'system(a)' 'kill(1, 9)' 'strerror(1)' 'sleep(1)' 'dup(1)' 'waitpid(1, 0, 0)'; do
        run ! compiles "$call"
    done
    compiles 'strlen(a)'
}

@test "no source file is longer than 600 lines" {
    run awk 'FNR > 600 { print FILENAME; nextfile }' src/*/*.[ch] src/*/*/*.[ch] cli/*.[ch] include/holdfast/*.h
    [ -z "$output" ] || { echo "$output"; return 1; }
}

@test "no sentence calls a process whoever or somebody" {
    run grep -rnwiE 'whoever|somebody' src cli include libexec docs README.md --exclude-dir=layer
    [ "$status" -eq 1 ] || { echo "$output"; return 1; }
}

@test "shell scripts pass shellcheck" {
    command -v shellcheck >/dev/null || skip "no shellcheck"
    shellcheck tools/deps tools/check-fresh tools/wheel tests/clients/run tests/python/run tests/run .ci/run examples/demo examples/tour examples/*/*.sh bench/run tests/fuzz/run tests/model/run
}

@test "the C examples of headers and README compile" {
    total=0
    for file in include/holdfast/*.h README.md; do
        n=$(/usr/bin/python3 tools/examples.py "$file")
        for ((i = 0; i < n; i++)); do
            /usr/bin/python3 tools/examples.py "$file" $i >"$BATS_TEST_TMPDIR/example.c"
            gcc -std=gnu11 -Iinclude -Wall -Wextra -Werror -Wno-unused-parameter -Wno-unused-variable -Wno-unused-but-set-variable \
                -fsyntax-only "$BATS_TEST_TMPDIR/example.c" || { echo "example $i of $file"; cat "$BATS_TEST_TMPDIR/example.c"; return 1; }
            total=$((total + 1))
        done
    done
    # Each header that shows a calling sequence has an example that was found.
    for file in $(grep -l 'Calling sequence' include/holdfast/*.h); do
        [ "$(/usr/bin/python3 tools/examples.py "$file")" -ge 1 ] || { echo "none in $file"; return 1; }
    done
    [ "$total" -ge 8 ]
}

# copy_tree DIR: what is under version control, or what a release holds
copy_tree() {
    mkdir -p "$1"
    cp -r Makefile meson.build meson_options.txt src cli libexec include docs tools "$1/"
    rm -rf "$1/src/layer"
}

@test "two builds in two directories are the same, byte for byte, debugging information included" {
    for place in one two/deeper; do
        copy_tree "$BATS_TEST_TMPDIR/$place/tree"
        meson setup "$BATS_TEST_TMPDIR/$place/tree/build" "$BATS_TEST_TMPDIR/$place/tree" -Dtests=false >/dev/null
        ninja -C "$BATS_TEST_TMPDIR/$place/tree/build" >/dev/null
    done
    for file in cli/holdfast libexec/holdfast-supervise src/libholdfast.so src/libholdfast.a; do
        cmp "$BATS_TEST_TMPDIR/one/tree/build/$file" "$BATS_TEST_TMPDIR/two/deeper/tree/build/$file"
    done
    run ! grep -qF "$BATS_TEST_TMPDIR" "$BATS_TEST_TMPDIR/one/tree/build/cli/holdfast"
}

@test "make install strips, a static program is static, make uninstall takes everything back" {
    copy_tree "$BATS_TEST_TMPDIR/tree"
    cd "$BATS_TEST_TMPDIR/tree"
    meson setup build/release --buildtype=release -Dtests=false -Dstatic=true --prefix "$BATS_TEST_TMPDIR/prefix" >/dev/null
    make install BUILD=build/release PREFIX="$BATS_TEST_TMPDIR/prefix" >"$BATS_TEST_TMPDIR/log" 2>&1 || { cat "$BATS_TEST_TMPDIR/log"; return 1; }
    [ "$("$BATS_TEST_TMPDIR/prefix/bin/holdfast" lock run x -- echo yes)" = yes ]
    # In the background: the installed program starts the installed supervisor.
    "$BATS_TEST_TMPDIR/prefix/bin/holdfast" run x --detach -- sleep 60
    supervisor=$("$BATS_TEST_TMPDIR/prefix/bin/holdfast" ps x --json | jq '.sessions[0].supervisor.pid')
    [ "$(readlink "/proc/$supervisor/exe")" = "$BATS_TEST_TMPDIR/prefix/libexec/holdfast-supervise" ]
    "$BATS_TEST_TMPDIR/prefix/bin/holdfast" stop x --grace 0
    # A prefix that was moved still finds it, and so does a program in another place by the path that was compiled in.
    cp "$BATS_TEST_TMPDIR/prefix/bin/holdfast" "$BATS_TEST_TMPDIR/alone"
    "$BATS_TEST_TMPDIR/alone" run x --detach -- true
    run readelf -S "$BATS_TEST_TMPDIR/prefix/bin/holdfast"
    [[ "$output" != *.symtab* && "$output" != *.interp* ]] || { echo "$output"; cat "$BATS_TEST_TMPDIR/log"; return 1; }
    [ "$(find "$BATS_TEST_TMPDIR/prefix" -type f | wc -l)" -gt 50 ]
    make uninstall BUILD=build/release PREFIX="$BATS_TEST_TMPDIR/prefix"
    [ -z "$(find "$BATS_TEST_TMPDIR/prefix" ! -type d)" ]
}

@test "make build installs nothing and says what is missing, for five package managers" {
    mkdir "$BATS_TEST_TMPDIR/bin"
    for program in sh cat sort paste mktemp rm grep id; do ln -s "$(command -v "$program")" "$BATS_TEST_TMPDIR/bin/"; done
    printf '#!/bin/sh\necho called >%q\n' "$BATS_TEST_TMPDIR/called" | tee "$BATS_TEST_TMPDIR/bin/sudo" "$BATS_TEST_TMPDIR/bin/apt-get" >"$BATS_TEST_TMPDIR/bin/dpkg-query"
    chmod +x "$BATS_TEST_TMPDIR/bin/sudo" "$BATS_TEST_TMPDIR/bin/apt-get" "$BATS_TEST_TMPDIR/bin/dpkg-query"
    run env PATH="$BATS_TEST_TMPDIR/bin" "$(command -v make)" build BUILD="$BATS_TEST_TMPDIR/build"
    [ "$status" -ne 0 ]
    for words in 'module:jansson' 'apt-get install' 'libjansson-dev' 'dnf install' 'pacman -S' 'apk add' 'zypper install'; do
        [[ "$output" == *"$words"* ]] || { echo "$words"; echo "$output"; return 1; }
    done
    [ ! -e "$BATS_TEST_TMPDIR/called" ]
}

@test "sources are listed in alphabetical order" {
    for list in src/meson.build cli/meson.build tests/meson.build; do
        /usr/bin/python3 - "$list" <<'PY' || return 1
import re, sys
text = open(sys.argv[1]).read()
for block in re.findall(r"(?:files\(|unit_tests = \[)([^)\]]*)[)\]]", text):
    names = re.findall(r"'([a-z_/0-9.]+)'", block)
    # A layer's own files come before those of its rooms.
    if names != sorted(names, key=lambda n: (n.count("/"), n)):
        sys.exit(f"{sys.argv[1]}: {names}")
PY
    done
}
