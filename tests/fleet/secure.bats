#!/usr/bin/env bats
# etcd that serves only clients with a certificate, and users with a password: the whole way, and no secret where others could read it.
load helper

secret='p4ss:w"ord\secret'

setup_file() {
    command -v openssl >/dev/null || skip "openssl is not installed"
    command -v etcdctl >/dev/null || skip "etcdctl is not installed (Debian: etcd-client)"
    export CERTS=$BATS_FILE_TMPDIR/certs
    local tls=$fleet_tests/../../examples/fleet/tls.sh
    "$tls" "$CERTS" ca
    "$tls" "$CERTS" server server localhost 127.0.0.1
    "$tls" "$CERTS" client client
    openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "$CERTS/named.key" -subj /CN=named -out "$CERTS/named.csr" 2>/dev/null
    openssl x509 -req -in "$CERTS/named.csr" -CA "$CERTS/ca.crt" -CAkey "$CERTS/ca.key" -CAcreateserial -days 1 -out "$CERTS/named.crt" 2>/dev/null
    start_cluster "$BATS_FILE_TMPDIR/fleet" 1 --loopback --tls "$CERTS" -- --auth-token-ttl 1
    umask 077
    printf '%s\n' "$secret" >"$BATS_FILE_TMPDIR/password"
    printf 'wrong\n' >"$BATS_FILE_TMPDIR/wrong"
}

teardown_file() { [ -z "${FLEET_DIR:-}" ] || cluster stop; }

setup() {
    export HOLDFAST_DIR=$BATS_TEST_TMPDIR/state HOLDFAST_STORE="$(cluster url)/hf?ttl=3s&call-timeout=1s"
    export HOLDFAST_ETCD_CACERT=$CERTS/ca.crt HOLDFAST_ETCD_CERT=$CERTS/client.crt HOLDFAST_ETCD_KEY=$CERTS/client.key
}

ctl() {
    ETCDCTL_API=3 timeout 20 etcdctl --endpoints "$(cluster endpoints)" --command-timeout 5s --cacert "$CERTS/ca.crt" --cert "$CERTS/client.crt" \
        --key "$CERTS/client.key" "$@"
}

# Later tests find it enabled.
with_users() {
    if mkdir "$BATS_FILE_TMPDIR/users" 2>/dev/null; then
        ctl user add root:root
        ctl user grant-role root root
        ctl role add hf
        ctl role grant-permission --prefix=true hf readwrite /hf/
        ctl user add "hf:$secret"
        ctl user grant-role hf hf
        ctl user add "stranger:$secret"
        ctl auth enable
    fi
    export HOLDFAST_ETCD_USER=hf HOLDFAST_ETCD_PASSWORD_FILE=$BATS_FILE_TMPDIR/password
}

@test "with a certificate locks and sessions work over TLS; without one, or with another authority, they do not" {
    token=$("$HOLDFAST" lock acquire x --ttl 30s)
    "$HOLDFAST" lock check x --token "$token"
    "$HOLDFAST" lock release x --token "$token"
    "$HOLDFAST" lock run x -- true
    "$HOLDFAST" run x -- sleep 3
    run env -u HOLDFAST_ETCD_CERT -u HOLDFAST_ETCD_KEY "$HOLDFAST" lock run x -- echo ran
    [ "$status" -ne 0 ]
    [[ "$output" != ran* ]]
    "$fleet_tests/../../examples/fleet/tls.sh" "$BATS_TEST_TMPDIR/other" ca
    run env HOLDFAST_ETCD_CACERT="$BATS_TEST_TMPDIR/other/ca.crt" "$HOLDFAST" run x -- echo ran
    [ "$status" -ne 0 ]
    [[ "$output" == *certificate* ]]
}

@test "with a user the token of etcd is renewed while a session runs; the password is nowhere to be read" {
    with_users
    "$HOLDFAST" lock run x -- sh -c 'env >"$1"; tr "\0" "\n" <"/proc/$PPID/cmdline" >>"$1"' x "$BATS_TEST_TMPDIR/seen"
    "$HOLDFAST" run -d s -- sh -c 'env >>"$1"; exec sleep 1000' x "$BATS_TEST_TMPDIR/seen"
    for pid in $(pgrep -f 'holdfast-renew s session'); do
        tr '\0' '\n' <"/proc/$pid/environ" >>"$BATS_TEST_TMPDIR/seen"
        tr '\0' '\n' <"/proc/$pid/cmdline" >>"$BATS_TEST_TMPDIR/seen"
    done
    # Longer than a token lives (1 s) and a lease lasts (2 s).
    run "$HOLDFAST" wait -w 5s s
    [ "$status" -eq 1 ]
    [ "$("$HOLDFAST" status --json s | jq -r .state)" = running ]
    "$HOLDFAST" stop s
    run ! grep -rF -- "$secret" "$BATS_TEST_TMPDIR/seen" "$HOLDFAST_DIR"
    run env HOLDFAST_ETCD_PASSWORD_FILE="$BATS_FILE_TMPDIR/wrong" "$HOLDFAST" run x -- echo ran
    [ "$status" -ne 0 ]
    echo "$output"
    [[ "$output" == *"authentication failed"* ]]
    [[ "$output" != *wrong* ]]
    run env HOLDFAST_ETCD_USER=stranger "$HOLDFAST" lock run x -- echo ran
    [ "$status" -ne 0 ]
    [[ "$output" == *"permission denied"* ]]
    chmod 644 "$BATS_FILE_TMPDIR/wrong"
    run env HOLDFAST_ETCD_PASSWORD_FILE="$BATS_FILE_TMPDIR/wrong" "$HOLDFAST" lock run x -- echo ran
    chmod 600 "$BATS_FILE_TMPDIR/wrong"
    [ "$status" -eq 3 ] || [ "$status" -eq 125 ]
}

@test "a certificate with a CommonName is refused where there are users, and the message names it" {
    with_users
    run env HOLDFAST_ETCD_CERT="$CERTS/named.crt" HOLDFAST_ETCD_KEY="$CERTS/named.key" "$HOLDFAST" lock run x -- echo ran
    [ "$status" -ne 0 ]
    [[ "$output" == *CommonName* ]]
}

@test "a certificate that is over is refused, and the message says so; the next one needs no restart of anything" {
    openssl req -new -key "$CERTS/client.key" -subj / -out "$BATS_TEST_TMPDIR/old.csr" 2>/dev/null
    openssl x509 -req -in "$BATS_TEST_TMPDIR/old.csr" -CA "$CERTS/ca.crt" -CAkey "$CERTS/ca.key" -CAcreateserial -days -1 -out "$BATS_TEST_TMPDIR/old.crt" 2>/dev/null
    with_users
    run env HOLDFAST_ETCD_CERT="$BATS_TEST_TMPDIR/old.crt" timeout 60 "$HOLDFAST" lock run x -- echo ran
    [ "$status" -ne 0 ]
    [[ "$output" == *certificate* ]]
    [[ "$output" != *ran* ]]
    timeout 60 "$HOLDFAST" lock run x -- true
    # doctor says it of each certificate, before it is too late.
    certificates() { "$HOLDFAST" doctor --json | jq -r '.checks[] | select(.check == "certificate") | .status + " " + .found'; }
    run certificates
    echo "$output"
    [[ "${lines[0]}" =~ ^ok\ $CERTS/ca.crt\ is\ valid\ for\ [0-9]+\ more\ days$ ]]
    [[ "${lines[1]}" =~ ^ok\ $CERTS/client.crt\ is\ valid ]]
    run env HOLDFAST_ETCD_CERT="$CERTS/named.crt" HOLDFAST_ETCD_KEY="$CERTS/named.key" "$HOLDFAST" doctor
    [[ "$output" == *"is valid for 0 more days"*CommonName* ]]
    export HOLDFAST_ETCD_CERT=$BATS_TEST_TMPDIR/old.crt
    run certificates
    echo "$output"
    [ "${lines[1]}" = "FAIL $BATS_TEST_TMPDIR/old.crt has ended" ]
    PATH=$BATS_TEST_TMPDIR/none HOLDFAST_ETCD_CERT=$CERTS/client.crt run "$HOLDFAST" doctor
    [[ "$output" == *"client.crt: not checked: openssl is not installed"* ]]
}

# serve_certificate AUTHORITY DAYS NAMES: what the member shows from its next connection on; etcd reads its file each time
serve_certificate() {
    local made=$BATS_TEST_TMPDIR/made
    printf 'subjectAltName=%s\nextendedKeyUsage=serverAuth,clientAuth\n' "$3" >"$made.ext"
    openssl req -new -key "$CERTS/server.key" -subj /CN=server -out "$made.csr" 2>/dev/null
    openssl x509 -req -in "$made.csr" -CA "$1/ca.crt" -CAkey "$1/ca.key" -CAcreateserial -days "$2" -extfile "$made.ext" -out "$made.crt" 2>/dev/null
    mv "$made.crt" "$CERTS/server.crt"
}

# server_rows: of each server's certificate the status, what was found, the remedy; then doctor's own status
server_rows() {
    local status=0
    "$HOLDFAST" doctor --json >"$BATS_TEST_TMPDIR/doctor" || status=$?
    jq -r '.checks[] | select(.check == "certificate" and (.found | startswith("the certificate of ") or startswith("cannot get the certificate"))) | .status + " " + .found + " " + (.instead // "")' "$BATS_TEST_TMPDIR/doctor"
    echo "exit $status"
}

@test "doctor tells how long each server's certificate is valid, and why one is refused" {
    local at here=DNS:localhost,IP:127.0.0.1
    [ ! -e "$BATS_FILE_TMPDIR/users" ] || with_users
    at=$(cluster endpoints)
    cp "$CERTS/server.crt" "$BATS_TEST_TMPDIR/first.crt"
    run server_rows
    echo "$output"
    [[ "${lines[0]}" =~ ^ok\ the\ certificate\ of\ $at\ is\ valid\ for\ 36[0-9]\ more\ days\ $ ]]

    serve_certificate "$CERTS" 12 "$here"
    run server_rows
    echo "$output"
    [[ "${lines[0]}" =~ ^warn\ the\ certificate\ of\ $at\ is\ valid\ for\ 1[12]\ more\ days\ .*renew ]]

    # One that has ended: no call gets through, and doctor still reads why.
    serve_certificate "$CERTS" -1 "$here"
    run server_rows
    echo "$output"
    [[ "${lines[0]}" =~ ^warn\ the\ certificate\ of\ $at\ expired\ on\ 20[0-9-]+\ and\ is\ refused\ .*renew ]]
    [ "${lines[1]}" = "exit 4" ]
    run "$HOLDFAST" lock run x -- echo ran
    [ "$status" -ne 0 ]
    [[ "$output" == *"certificate has expired"* ]]

    serve_certificate "$CERTS" 100 DNS:elsewhere.example
    run server_rows
    echo "$output"
    [[ "${lines[0]}" =~ ^warn\ the\ certificate\ of\ $at\ is\ refused:\ .*127.0.0.1.*it\ was\ made\ for\ DNS:elsewhere.example ]]
    [ "${lines[1]}" = "exit 4" ]

    "$fleet_tests/../../examples/fleet/tls.sh" "$BATS_TEST_TMPDIR/other" ca
    serve_certificate "$BATS_TEST_TMPDIR/other" 100 "$here"
    run server_rows
    echo "$output"
    [[ "${lines[0]}" =~ ^warn\ the\ certificate\ of\ $at\ is\ refused:\ .*issuer.*HOLDFAST_ETCD_CACERT ]]

    # A server that does not answer beside one that does.
    mv "$BATS_TEST_TMPDIR/first.crt" "$CERTS/server.crt"
    HOLDFAST_STORE="${HOLDFAST_STORE/etcds:\/\//etcds:\/\/127.0.0.1:1,}"
    run server_rows
    echo "$output"
    [[ "${lines[0]}" == "absent cannot get the certificate of https://127.0.0.1:1: "*connect*"its port is reachable" ]]
    [[ "${lines[1]}" == "ok the certificate of $at is valid"* ]]
}
