#!/bin/sh
# Certificates for a fleet: a small authority of its own, one certificate for each etcd member, one for each client.
#
#   tls.sh DIR ca                      makes the authority: DIR/ca.crt (goes everywhere), DIR/ca.key (stays here)
#   tls.sh DIR server NAME ADDRESS...  DIR/NAME.crt, DIR/NAME.key: a member, reachable by these host names and addresses
#   tls.sh DIR client NAME             DIR/NAME.crt, DIR/NAME.key: a machine that uses the fleet
#
# A client's certificate has no CommonName on purpose: once etcd has users and passwords, its JSON gateway refuses a certificate
# with one. The machine's name is in the alternative names instead. Keys are readable by their owner only. DAYS (365): how long each
# certificate is good for; the authority lasts ten times that.
set -eu
umask 077

usage() { sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0" >&2; exit 2; }
[ $# -ge 2 ] || usage
dir=$1 what=$2
shift 2
days=${DAYS:-365}
mkdir -p "$dir"

# The name of a file, and of a machine in a certificate: nothing that openssl or a path would read as more.
plain() { case $1 in '' | -* | *[!A-Za-z0-9.:_-]*) echo "tls.sh: '$1' is not a name or address" >&2; exit 2 ;; esac; }

names() {
    for n; do
        plain "$n"
        case $n in *:* | *[0-9].*[0-9].*[0-9].*[0-9]) case $n in *[!0-9a-fA-F.:]*) echo "DNS:$n" ;; *) echo "IP:$n" ;; esac ;; *) echo "DNS:$n" ;; esac
    done | paste -sd, -
}

# certificate NAME SUBJECT USAGE ALTERNATIVE-NAMES
certificate() {
    [ -f "$dir/ca.key" ] || { echo "tls.sh: no authority in $dir; 'tls.sh $dir ca' makes one" >&2; exit 1; }
    [ ! -e "$dir/$1.key" ] || { echo "tls.sh: $dir/$1.key is there already" >&2; exit 1; }
    printf 'basicConstraints=CA:FALSE\nkeyUsage=digitalSignature\nextendedKeyUsage=%s\nsubjectAltName=%s%s\n' "$3" "$5" "$4" >"$dir/$1.ext"
    openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "$dir/$1.key" -subj "$2" -out "$dir/$1.csr" 2>/dev/null
    openssl x509 -req -in "$dir/$1.csr" -CA "$dir/ca.crt" -CAkey "$dir/ca.key" -CAcreateserial -days "$days" -extfile "$dir/$1.ext" \
        -out "$dir/$1.crt" 2>/dev/null
    rm -f "$dir/$1.csr" "$dir/$1.ext"
    chmod 644 "$dir/$1.crt"
    echo "$dir/$1.crt $dir/$1.key"
}

case $what in
ca)
    [ ! -e "$dir/ca.key" ] || { echo "tls.sh: $dir/ca.key is there already" >&2; exit 1; }
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "$dir/ca.key" -out "$dir/ca.crt" \
        -days $((10 * days)) -subj '/CN=Holdfast fleet' -addext keyUsage=critical,keyCertSign,cRLSign 2>/dev/null
    chmod 644 "$dir/ca.crt"
    echo "$dir/ca.crt"
    ;;
server)
    [ $# -ge 2 ] || usage
    plain "$1"
    name=$1
    shift
    # A member is also the client of the others.
    certificate "$name" "/CN=$name" serverAuth,clientAuth "$(names "$@")" ''
    ;;
client)
    [ $# -eq 1 ] || usage
    plain "$1"
    # Without a subject, the names have to be marked as critical.
    certificate "$1" / clientAuth "DNS:$1" critical,
    ;;
*) usage ;;
esac
