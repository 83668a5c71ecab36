#!/bin/sh
# Three etcd members on this machine, to try a fleet before there is one. No root, no service, no container.
#
#   trial.sh up [DIR]       starts them (DIR: ./fleet-trial; ports from PORT, 23790, on); prints the store's address
#   trial.sh env [DIR]      prints the line that makes Holdfast use them:  eval "$(trial.sh env)"
#   trial.sh status [DIR]   which members run, and which one leads
#   trial.sh stop N [DIR]   ends one member (1 to 3), as a dead machine would; up starts it again
#   trial.sh down [DIR]     ends all of them; the data stays in DIR until you remove it
#
# Needs the programs etcd and etcdctl (Debian: etcd-server, etcd-client; its service is not used and may stay masked).
set -eu

verb=${1:-}
[ $# -eq 0 ] || shift
member=
if [ "$verb" = stop ]; then
    member=${1:-}
    case $member in 1 | 2 | 3) shift ;; *) echo "trial.sh stop 1|2|3 [DIR]" >&2; exit 2 ;; esac
fi
dir=${1:-fleet-trial}
port=${PORT:-23790}
[ ! -f "$dir/port" ] || port=$(cat "$dir/port")

client() { echo $((port + 2 * $1)); }
peer() { echo $((port + 2 * $1 + 1)); }
endpoints() { echo "http://127.0.0.1:$(client 1),http://127.0.0.1:$(client 2),http://127.0.0.1:$(client 3)"; }
ctl() { ETCDCTL_API=3 etcdctl --endpoints "$(endpoints)" --command-timeout 2s "$@"; }

# runs N: the pid that was noted is still that member, and no other process that has got its number
runs() {
    [ -f "$dir/$1.pid" ] && tr '\0' '\n' <"/proc/$(cat "$dir/$1.pid")/cmdline" 2>/dev/null | grep -qxF "$(cd "$dir" && pwd)/$1.data"
}

up() {
    command -v etcd >/dev/null || { echo "etcd is not installed (Debian: apt-get install etcd-server etcd-client)" >&2; exit 1; }
    mkdir -p "$dir"
    echo "$port" >"$dir/port"
    all="m1=http://127.0.0.1:$(peer 1),m2=http://127.0.0.1:$(peer 2),m3=http://127.0.0.1:$(peer 3)"
    for n in 1 2 3; do
        runs "$n" && continue
        setsid etcd --name "m$n" --data-dir "$(cd "$dir" && pwd)/$n.data" \
            --listen-client-urls "http://127.0.0.1:$(client "$n")" --advertise-client-urls "http://127.0.0.1:$(client "$n")" \
            --listen-peer-urls "http://127.0.0.1:$(peer "$n")" --initial-advertise-peer-urls "http://127.0.0.1:$(peer "$n")" \
            --initial-cluster "$all" --initial-cluster-token holdfast-trial --logger zap --log-outputs stderr --log-level error \
            </dev/null >>"$dir/$n.log" 2>&1 &
        echo $! >"$dir/$n.pid"
    done
    for n in 1 2 3; do
        until ETCDCTL_API=3 etcdctl --endpoints "http://127.0.0.1:$(client "$n")" --command-timeout 1s endpoint health >/dev/null 2>&1; do
            runs "$n" || { echo "member $n does not start; $dir/$n.log says:" >&2; tail -n 3 "$dir/$n.log" >&2; exit 1; }
            sleep 0.1
        done
    done
}

# SIGKILL: members that are all told to go take 5 s, each trying to hand over its lead. etcd survives it, as it does a power cut.
end() {
    for n; do
        if runs "$n"; then kill -KILL "$(cat "$dir/$n.pid")"; fi
        rm -f "$dir/$n.pid"
    done
}

case $verb in
up) up; store=$(endpoints | sed 's|http://||g'); echo "etcd://$store/trial" ;;
env) echo "export HOLDFAST_STORE=etcd://$(endpoints | sed 's|http://||g')/trial" ;;
status) ctl endpoint status -w table ;;
stop) end "$member" ;;
down) end 1 2 3 ;;
*) sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0" >&2; exit 2 ;;
esac
