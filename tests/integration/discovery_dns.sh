#!/usr/bin/env bash
# The recipe deploy/discovery/dns.sh: all addresses of a name, from a real name server on loopback, in a network and with an
# /etc/resolv.conf of the test's own; an address that goes, a name that does not exist, a server that is silent.
#
#     discovery_dns.sh HOSTS
set -euo pipefail
tests=$(realpath "$(dirname "$0")/..")
hosts=$(realpath "$1")
dns=$tests/../deploy/discovery/dns.sh
if [ -z "${DNS_INSIDE:-}" ]; then
  if ! unshare -n -m true 2>/dev/null; then
    echo 'skipped: network and mount namespaces cannot be made here; run as root'
    exit 77
  fi
  DNS_INSIDE=1 exec unshare -n -m "$0" "$hosts"
fi
unset "${!DISCOVER_@}"
folder=$(mktemp -d)
server=''
trap '[ -z "$server" ] || kill "$server"; rm -rf "$folder"' EXIT
cd "$folder"

ip link set lo up
# getent leaves out the addresses of a family of which the machine has none but the loopback
ip addr add fd00::1/128 dev lo nodad
ip addr add 10.7.0.99/32 dev lo
printf 'nameserver 127.0.0.1\noptions timeout:1 attempts:1\n' >resolv.conf
printf 'hosts: files dns\n' >nsswitch.conf
mount --bind resolv.conf /etc/resolv.conf
mount --bind nsswitch.conf /etc/nsswitch.conf
printf '%s\n' 'agents.lab 10.7.0.2' 'agents.lab 10.7.0.1' 'agents.lab fd00::7' 'one.lab 10.7.0.9' >zone
mkfifo ready
"$tests/recipes/dns_server.py" zone >ready &
server=$!
read -r _ <ready

# lists WANT WORDS...: these hosts, in this order, and hvd-hosts reads them.
lists() {
  local want=$1
  shift
  "$dns" "$@" >listed 2>said || {
    echo "dns.sh $*: exit code $?: $(cat said)"
    exit 1
  }
  if [ "$(paste -s -d ' ' listed)" != "$want" ] || [ -s said ] || ! "$hosts" - <listed >>said 2>&1; then
    echo "dns.sh $*: not '$want', but: $(cat listed said)"
    exit 1
  fi
}

# fails TEXT WORDS...: exit code 1, nothing listed, and one line with this text.
fails() {
  local text=$1 code=0
  shift
  "$dns" "$@" >listed 2>said || code=$?
  if [ $code != 1 ] || [ -s listed ] || [ "$(wc -l <said)" != 1 ] || ! grep -qF -- "$text" said; then
    echo "dns.sh $*: exit code $code, not 1, or no '$text': $(cat said listed)"
    exit 1
  fi
}

lists '10.7.0.1:4 10.7.0.2:4 [fd00::7]:4' agents.lab 4
DISCOVER_NAME=agents.lab DISCOVER_SLOTS=2 DISCOVER_FAMILY=6 lists '[fd00::7]:2'
DISCOVER_FAMILY=4 lists '10.7.0.1 10.7.0.2' agents.lab
lists '10.7.0.9' one.lab
sed -i /10.7.0.2/d zone
lists '10.7.0.1 [fd00::7]' agents.lab
fails 'none.lab: getent finds no address; check the name' none.lab
mv zone away # the server is silent
fails 'finds no address' agents.lab
printf 'nameserver 127.0.0.1\noptions timeout:30\n' >resolv.conf
DISCOVER_TIMEOUT=1 fails 'agents.lab: no answer within 1s; check the name servers, or raise DISCOVER_TIMEOUT' agents.lab
fails 'no name is given'
fails 'cannot begin with a dash' -x
fails 'x: the slots must be a number' agents.lab x
DISCOVER_TIMEOUT=0 fails 'must be a number of seconds' agents.lab
DISCOVER_FAMILY=5 fails 'must be 4 or 6' agents.lab
echo 'dns.sh lists all addresses of a name; a silent server and an unknown name are failures'
