#!/usr/bin/env bats
# examples/fleet: the trial on one machine, the certificates, the units.
load helper

example=$EXAMPLES/fleet
cluster=$BATS_TEST_DIRNAME/../fleet/cluster

setup() {
    command -v etcd >/dev/null || skip "etcd is not installed (Debian: etcd-server)"
    cd "$BATS_TEST_TMPDIR" || return 1
    PORT=$(python3 -c 'import random; print(random.randrange(20000, 32000))')
    export PORT
}

teardown() {
    "$example/trial.sh" down "$BATS_TEST_TMPDIR/trial" || true
    "$cluster" -C "$BATS_TEST_TMPDIR/fleet" stop || true
}

ctl() { ETCDCTL_API=3 timeout 20 etcdctl --command-timeout 5s "$@"; }

# ended PID: gone, or a zombie that nobody reaps
ended() { ! grep -q '^State:[^ZX]*$' "/proc/$1/status" 2>/dev/null; }

@test "the trial starts three members, loses one, starts it again, and ends" {
    # A port that another process has is not the script's fault: another try.
    for _ in 1 2 3 4 5; do
        "$example/trial.sh" up trial && break
        "$example/trial.sh" down trial
        rm -rf trial
        PORT=$((PORT + 101))
    done
    eval "$("$example/trial.sh" env trial)"
    [[ "$HOLDFAST_STORE" == etcd://127.0.0.1:*/trial ]]
    endpoints=${HOLDFAST_STORE#etcd://}
    endpoints=${endpoints%/trial}
    ctl --endpoints "$endpoints" put k v
    pid=$(cat trial/2.pid)
    "$example/trial.sh" stop 2 trial
    [ ! -e trial/2.pid ]
    ctl --endpoints "${endpoints%%,*}" get k
    "$example/trial.sh" up trial
    [ "$(cat trial/2.pid)" != "$pid" ]
    "$example/trial.sh" status trial
    pids=$(cat trial/*.pid)
    "$example/trial.sh" down trial
    for pid in $pids; do wait_until $BOUND ended "$pid"; done
}

@test "a client with a certificate is served, one without is not" {
    "$example/tls.sh" certs ca
    "$example/tls.sh" certs server server localhost 127.0.0.1
    "$example/tls.sh" certs client client
    [ "$(stat -c %a certs/client.key certs/ca.key | sort -u)" = 600 ]
    # No CommonName: etcd's gateway refuses one where there are users.
    [ "$(openssl x509 -in certs/client.crt -noout -subject)" = "subject=" ]
    "$cluster" -C "$BATS_TEST_TMPDIR/fleet" start 1 --loopback --tls certs --owner $$
    at=$("$cluster" -C "$BATS_TEST_TMPDIR/fleet" endpoints)
    ctl --endpoints "$at" --cacert certs/ca.crt --cert certs/client.crt --key certs/client.key put k v
    run ! ctl --endpoints "$at" --cacert certs/ca.crt put k v
    run ! ctl --endpoints "$at" --cert certs/client.crt --key certs/client.key put k v
}

@test "certificates are not overwritten, and a name is no path" {
    run -1 "$example/tls.sh" certs client c1
    "$example/tls.sh" certs ca
    run -1 "$example/tls.sh" certs ca
    "$example/tls.sh" certs client c1
    run -1 "$example/tls.sh" certs client c1
    run -2 "$example/tls.sh" certs client ../x
    run -2 "$example/tls.sh" certs client 'a/CN=b'
    run -2 "$example/tls.sh" certs client '-x'
}

@test "the unit of a member is understood by systemd, and its options by etcd" {
    # What the unit says beside the certificates, tried: etcd reads its environment file and these options.
    grep -o '^ETCD_[A-Z_]*' "$example/etcd.env" | while read -r name; do
        option=$(tr 'A-Z_' 'a-z-' <<<"${name#ETCD_}")
        etcd --help 2>&1 | grep -q -- "--$option " || { echo "etcd has no --$option"; exit 1; }
    done
    for option in $(grep -oE -- '--[a-z-]+' "$example/etcd.service"); do
        etcd --help 2>&1 | grep -q -- "$option" || { echo "etcd has no $option"; return 1; }
    done
    command -v systemd-analyze >/dev/null || skip "no systemd-analyze"
    systemd-analyze verify "$example/etcd.service" 2>&1 | tee said
    run ! grep -E 'Unknown (lvalue|key|section)|Failed to parse' said
}
