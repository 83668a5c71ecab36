# The tree itself: layers, headers, symbols, documents, README.
load helper

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
        # One look for each layer: the preprocessor keeps the line of every header that an include would find.
        for header in src/*/*.h src/*/*/*.h src/*/*/*/*.h "$BUILD"/src/layer/*/holdfast/*.h; do
            [ -e "$header" ] || continue
            case $header in
            */holdfast/*) name=holdfast/${header##*/} other=${header%/holdfast/*} other=${other##*/} ;;
            *) name=hf/${header#src/} other=${header#src/} other=${other%%/*} ;;
            esac
            [ "$other" = "$layer" ] || printf '#if __has_include("%s")\n%s found %s\n#else\n%s missing %s\n#endif\n' "$name" "$other" "$name" "$other" "$name"
        done >"$BATS_TEST_TMPDIR/looks.c"
        [ "$(grep -c found "$BATS_TEST_TMPDIR/looks.c")" -gt 100 ]
        gcc -E -P $(flags "$layer") "$BATS_TEST_TMPDIR/looks.c" >"$BATS_TEST_TMPDIR/found"
        while read -r other what name; do
            case $what,$below in
            found,*",$other,"*) ;;
            found,*) echo "$layer may include $name"; return 1 ;;
            missing,*",$other,"*) echo "$layer may not include $name"; return 1 ;;
            esac
        done <"$BATS_TEST_TMPDIR/found"
    done
    # What the preprocessor does not find does not compile.
    run ! gcc -D_GNU_SOURCE $(flags base) -fsyntax-only -x c - <<<'#include "hf/sys/io.h"'
}

@test "no include climbs out of its layer with .." {
    run grep -rnE '#include *"[^"]*\.\./' src cli include
    [ "$status" -eq 1 ]
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
    for page in "$BUILD"/docs/man3/holdfast_*.3 docs/man/*.[17]; do
        run mandoc -T lint -W warning "$page"
        [ "$status" -eq 0 ] || { echo "$output"; return 1; }
        # Its foot names the project, not the system that it is read on.
        grep -qx '.Os Holdfast' "$page" || { echo "$page: .Os"; return 1; }
    done
}

@test "a section 3 page shows lists as lists, code unchanged, and a paragraph for each label" {
    cat >"$BATS_TEST_TMPDIR/sample.h" <<'END'
/*
 * holdfast/sample.h - a sample.
 *
 * Refused:
 *
 *   - a path that is long enough
 *     for two lines;
 *   - another path.
 *
 *     int code = 1;
 *
 * Ownership: the caller.
 * Threads: one.
 */

/* Does nothing. */
HF_API void hf_sample(void);
END
    /usr/bin/python3 tools/header-man.py "$BATS_TEST_TMPDIR/sample.h" "$BATS_TEST_TMPDIR"
    run mandoc -T ascii -O width=60 "$BATS_TEST_TMPDIR/holdfast_sample.3"
    page=$(sed 's/.\x08//g' <<<"$output")
    for part in $'Refused:\n     -   a path that is long enough for two lines;\n     -   another path.\n' \
        $'\n         int code = 1;\n' $'Ownership: the caller.\n\n     Threads: one.\n' $'hf_sample(void);\n'; do
        [[ "$page" == *"$part"* ]] || { echo "$part"; echo "$page"; return 1; }
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

# blocks LANGUAGE: the text of the guide's blocks of that language
blocks() { sed -n "/^\`\`\`$1\$/,/^\`\`\`\$/p" docs/GUIDE.md | grep -v '^```'; }

@test "the Python of the guide works as printed" {
    blocks python >"$BATS_TEST_TMPDIR/guide.py"
    [ "$(wc -l <"$BATS_TEST_TMPDIR/guide.py")" -ge 10 ]
    cd "$BATS_TEST_TMPDIR"
    mkdir app
    HOLDFAST_LIBRARY=$BUILD/src/libholdfast.so.0 HOLDFAST_LIBEXEC=$BUILD/libexec PYTHONPATH=$TOP/bindings/python PYTHONDONTWRITEBYTECODE=1 \
        timeout 60 /usr/bin/python3 guide.py
    [ "$(cat app/file)" = three ]
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

@test "the CLI is a client: public headers, view, what starts commands, and four plain helpers of base" {
    run grep -rnE '#include "hf/' cli --include='*.[ch]'
    output=$(grep -vE '"hf/(view/[^"]+|exec/[a-z]+|lock/lease/renew(al|er)|base/(buf|cleanup|escapes|parse))\.h"' <<<"$output") || true
    [ -z "$output" ] || { echo "$output"; return 1; }
    # Its include path has no others.
    grep -A3 '^build cli/holdfast.p/main.c.o:' "$BUILD/build.ninja" | grep -q -- '-Isrc/client/cli'
    run ! grep -q -- '-Isrc/layer/run' <(grep -A3 '^build cli/holdfast.p/main.c.o:' "$BUILD/build.ninja")
    for header in hf/run/keeper/keeper.h hf/sys/io.h hf/lock/context.h hf/base/fail.h hf/plan/commit/commit.h; do
        run ! gcc -D_GNU_SOURCE -I"$BUILD/src/client/cli" -fsyntax-only -x c - <<<"#include \"$header\""
    done
    gcc -D_GNU_SOURCE -I"$BUILD/src/client/cli" -fsyntax-only -x c - <<<'#include "hf/view/session/session.h"'
}

@test "each law has its row in docs/ARCHITECTURE.md, whose functions stand in the files named; every file that a document names exists" {
    /usr/bin/python3 - <<'PY'
import os, re, sys
bad = []
text = open("docs/ARCHITECTURE.md").read()
rows = dict(re.findall(r"^\| (L\d+) \|.*\| (.*) \|$", text, re.M))
if sorted(rows, key=lambda law: int(law[1:])) != [f"L{i}" for i in range(1, 15)]:
    bad.append(f"laws: {sorted(rows)}")
for law, row in rows.items():
    found = re.findall(r"`(\w+)` in `([\w/]+\.c)`", row)
    if not found:
        bad.append(f"{law}: no function")
    for function, path in found:
        if not os.path.exists(path) or not re.search(rf"^[a-z].*\b{function}\(", open(path).read(), re.M):
            bad.append(f"{law}: {function} is not in {path}")
for document in ("ARCHITECTURE", "FORMATS", "INVARIANTS", "JSON", "MODEL"):
    for path in re.findall(r"`((?:src|cli|libexec|tests|tools)/[\w/.-]+\.\w+)`", open(f"docs/{document}.md").read()):
        if not os.path.exists(path):
            bad.append(f"docs/{document}.md: {path} does not exist")
# A file that is named without its folder, and a function, are somewhere.
names, code = set(), ""
for folder in ("src", "cli", "libexec", "include", "tests"):
    for at, _, files in os.walk(folder):
        names.update(files)
        if folder in ("src", "include", "libexec"):
            code += "".join(open(os.path.join(at, f)).read() for f in files if f.endswith((".c", ".h")))
for name in re.findall(r"`([\w-]+\.[ch])`", text):
    if name not in names:
        bad.append(f"{name} does not exist")
for function in re.findall(r"`(hf_\w+)`", text):
    if not re.search(rf"\b{function}\b", code):
        bad.append(f"{function} does not exist")
# A question's functions stand in the file that is named before or behind them.
for row in re.findall(r"^\| .*\? .*\| (`.*) \|$", text, re.M):
    for path, function in re.findall(r"`(src/[\w/]+\.c)`, `(\w+)`(?! in)", row) + [(p, f) for f, p in re.findall(r"`(\w+)` in `(src/[\w/]+\.c)`", row)]:
        if not re.search(rf"^[a-z].*\b{function}\(", open(path).read(), re.M):
            bad.append(f"{function} is not in {path}")
sys.exit("\n".join(bad) or 0)
PY
}

@test "every trap of docs/TRAPS.md has its number and a proof that is the whole title of a test" {
    /usr/bin/python3 -B tests/tree/titles.py --check docs/TRAPS.md 50
    # Forty-two numbers in order, each with a proof before the next.
    awk '/^\*\*[0-9]+\.\*\*/ { n++; bad += open || $1 != "**" n ".**"; open = 1 } /^- `tests/ { open = 0 } END { exit bad || n != 42 || open }' docs/TRAPS.md
}

@test "every trap of docs/FLEET-TRAPS.md has its number and a proof that is the whole title of a test" {
    /usr/bin/python3 -B tests/tree/titles.py --check docs/FLEET-TRAPS.md 45
    awk '/^\*\*[0-9]+\.\*\*/ { n++; bad += open || $1 != "**" n ".**"; open = 1 } /^- `tests/ { open = 0 } END { exit bad || n != 37 || open }' docs/FLEET-TRAPS.md
}

@test "a test of stores that is given an unknown store or too many arguments runs nothing and fails" {
    for program in "$BUILD"/tests/store-*; do
        [ -f "$program" ] || continue
        run -2 "$program" nonsense:
        [[ "$output" == *"Bail out! nonsense:"* ]] || { echo "$output"; return 1; }
        run -2 "$program" local: local:
    done
}

@test "the commands of the guide work as printed" {
    blocks sh >"$BATS_TEST_TMPDIR/guide.sh"
    [ "$(wc -l <"$BATS_TEST_TMPDIR/guide.sh")" -gt 60 ]
    cd "$BATS_TEST_TMPDIR"
    PATH="$BUILD/cli:$PATH" run timeout 60 bash -e guide.sh
    [ "$status" -eq 0 ] || { echo "$output"; return 1; }
}

@test "the recipes of the guide work as printed" {
    blocks bash >"$BATS_TEST_TMPDIR/recipes.sh"
    [ "$(grep -c '^holdfast' "$BATS_TEST_TMPDIR/recipes.sh")" -ge 8 ]
    repository_with_agent
    PATH="$BATS_TEST_TMPDIR/bin:$BUILD/cli:$PATH" run timeout 100 bash -e "$BATS_TEST_TMPDIR/recipes.sh"
    [ "$status" -eq 0 ] || { echo "$output"; return 1; }
    # Three candidates, one commit each; the other agents left their files in the work tree.
    [ "$(git rev-list --count main)" -eq 4 ] || { git log --oneline; echo "$output"; return 1; }
    [ -f fixissue160 ]
    [ "$(cat ../deployed)" = deployed ]
    # Each line of the list had its agent.
    for n in 171 172 173 174; do
        timeout 60 "$BUILD/cli/holdfast" wait "fix-$n"
        [ -f "fixissue$n" ]
    done
}

@test "the README prints what the program prints, in at most 120 lines and 900 words" {
    [ "$(wc -l <README.md)" -le 120 ]
    [ "$(wc -w <README.md)" -le 900 ]
    PYTHONDONTWRITEBYTECODE=1 run timeout 100 tools/transcript "$BUILD/cli/holdfast" README.md
    [ "$status" -eq 0 ] || { echo "$output"; echo "(tools/transcript --write HOLDFAST README.md)"; return 1; }
}

@test "the picture of the README is made from what the program prints" {
    PYTHONDONTWRITEBYTECODE=1 run timeout 100 tools/picture --check "$BUILD/cli/holdfast"
    [ "$status" -eq 0 ] || { echo "$output"; return 1; }
    for words in "fix #160" verify-failed timed-out "FAIL: add 2 2 is not 4" "Write the manual"; do
        grep -qF "$words" docs/picture.svg || { echo "$words"; return 1; }
    done
    grep -qF "docs/picture.svg" README.md
}

@test "the version is the same in the build, the header and the changelog" {
    version=$(sed -nE "s/^    version: '([^']+)'.*/\1/p" meson.build)
    [ "$("$BUILD/cli/holdfast" version)" = "holdfast $version" ]
    grep -q "^## $version" CHANGELOG.md
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

@test "every negated command of a test can fail it: bash looks at one only where it is the last" {
    run awk '{ if (before != "" && $0 !~ /^}/) print before; before = "" }
        /^ *! / && !/\|\||&&/ { before = FILENAME ":" FNR ": " $0 " (run ! ...)" }' tests/*/*.bats tests/*/*/*.bats
    [ -z "$output" ] || { echo "$output"; return 1; }
}

@test "shell scripts pass shellcheck" {
    command -v shellcheck >/dev/null || skip "no shellcheck"
    shellcheck tools/deps tools/check-fresh tools/wheel tests/clients/run tests/python/run tests/run tests/schedule.bash .ci/run examples/demo examples/tour examples/*/*.sh bench/run tests/fuzz/run tests/model/run tests/fleet/cluster tests/fleet/cluster-inside.bash tests/fleet/chaos/run
}

@test "the C examples of headers and guide compile" {
    total=0
    for file in include/holdfast/*.h docs/GUIDE.md; do
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
