# shellcheck shell=bash disable=SC2154  # a part of tests/fleet/cluster, which sources it
#
# What the first process of the fleet does (loopback: the watcher): makes the nodes, runs the members, starts them again on request.

run_member() { # MEMBER [existing]: in the background; the pid goes to DIR/MEMBER.pid
    local m=$1 a client peer other ports all='' s enter=() beat=50 elect=500 state=${2:-new} data=$dir/private/$1 secure=()
    s=$(scheme)
    a=$(member_address "$m")
    read -r client peer < <(member_ports "$m")
    for other in $(member_names); do
        read -r _ ports < <(member_ports "$other")
        all+=${all:+,}$other=http://$(member_address "$other"):$ports
    done
    case $profile in conformance) beat=20 elect=200 ;; production) beat=100 elect=1000 ;; esac
    [ "$mode" != net ] || enter=(nsenter --net="$dir/private/$m.net")
    [ -z "$tls" ] || secure=(--cert-file "$tls/server.crt" --key-file "$tls/server.key" --trusted-ca-file "$tls/ca.crt" --client-cert-auth)
    env -u ETCD_NAME -u ETCD_DATA_DIR "${enter[@]}" setpriv --pdeathsig KILL etcd --name "$m" --data-dir "$data" \
        --listen-client-urls "$s://$a:$client" --advertise-client-urls "$s://$a:$client" \
        --listen-peer-urls "http://$a:$peer" --initial-advertise-peer-urls "http://$a:$peer" \
        --initial-cluster "$all" --initial-cluster-state "$state" --initial-cluster-token "$token" \
        --heartbeat-interval "$beat" --election-timeout "$elect" --logger zap --log-outputs stderr --log-level error \
        "${secure[@]}" "${more[@]}" >>"$dir/$m.log" 2>&1 4>&- &
    echo $! >"$dir/$m.pid.new"
    mv "$dir/$m.pid.new" "$dir/$m.pid"
}

run_all_members() {
    local m
    for m in $(member_names); do run_member "$m"; done
    for m in $(member_names); do
        until healthy "$m"; do
            lives "$(cat "$dir/$m.pid")" || return 1
            owned || exit 0
            sleep 0.01
        done
    done
}

# owned: the process that the fleet belongs to has not ended; always true inside, where the watcher looks
owned() { [ -z "${owner:-}" ] || [ "$(started "$owner")" = "$owner_start" ]; }

# Obeys requests until it is killed or the owner has ended.
serve() {
    local verb m
    while :; do
        if read -r -t 0.2 -u 4 verb m; then
            case $verb in
            start) run_member "$m" ;;
            replace) rm -rf "${dir:?}/private/$m" && run_member "$m" existing ;;
            esac
        fi
        owned || exit 0
    done
}

# The first process of the fleet's pid namespace.
inside() {
    local outer n
    load
    exec 4<>"$dir/requests"
    read -r outer _ </proc/self/stat # our pid where /proc was mounted, outside
    mount -t proc proc /proc
    mount -t tmpfs tmpfs "$dir/private"
    # A namespace that is not the machine's never routes to it: there is no link out of this one.
    echo 1 >/proc/sys/net/ipv4/ip_forward
    ip link set lo up
    for n in $(member_names) $(host_names); do make_node "$n"; done
    for n in $(host_names); do
        nsenter --net="$dir/private/$n.net" unshare --pid --mount --uts --fork --kill-child "$self" -C "$dir" --host "$n" 4>&- &
    done
    run_all_members
    for n in $(host_names); do until [ -e "$dir/$n.pid" ]; do sleep 0.01; done; done
    echo "$outer" >"$dir/ready.new"
    mv "$dir/ready.new" "$dir/ready"
    serve
}

make_node() {
    local n=$1 a in=(nsenter --net="$dir/private/$1.net" ip)
    a=$(node_address "$n")
    : >"$dir/private/$n.net"
    unshare --net="$dir/private/$n.net" true
    ip link add name "r-$n" type veth peer name eth0 netns "$dir/private/$n.net"
    "${in[@]}" -batch - <<BATCH
link set lo up
addr add $a/32 dev eth0
link set eth0 up
route add 198.18.0.254 dev eth0
route add default via 198.18.0.254
BATCH
    ip addr add 198.18.0.254/32 dev "r-$n"
    ip link set "r-$n" up
    ip route add "$a" dev "r-$n"
}

# The first process of a simulated host.
host() {
    local n=$1 outer id
    load
    read -r outer _ </proc/self/stat # our pid in the fleet
    mount -t proc proc /proc
    hostname "$n"
    id=$(printf '%032x' "0x${token}${n#h}")
    echo "$id" >"$dir/private/$n.machine-id"
    echo "${id:0:8}-${id:8:4}-4${id:13:3}-8${id:17:3}-${id:20:12}" >"$dir/private/$n.boot-id"
    mount --bind "$dir/private/$n.boot-id" /proc/sys/kernel/random/boot_id
    if [ ! -e /etc/machine-id ]; then # a minimal system has none to put ours over
        cp -r /etc "$dir/private/$n.etc" 2>/dev/null || true
        mount --bind "$dir/private/$n.etc" /etc
        : >/etc/machine-id
    fi
    mount --bind "$dir/private/$n.machine-id" /etc/machine-id
    echo "$outer" >"$dir/$n.pid.new"
    mv "$dir/$n.pid.new" "$dir/$n.pid"
    while :; do # bash reaps what its namespace leaves to it
        sleep 1000 &
        wait $! || true
    done
}
