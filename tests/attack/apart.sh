#!/usr/bin/env bash
# Runs a program between network namespaces: each is a host 10.79.N.2 behind this one, which is the router 10.79.N.1.
# The program gets their names. A router of a good network passes no packet with a source that is not its sender's; this one
# does, as the network of strangers may.
#
#     apart.sh COUNT PROGRAM
set -euo pipefail
script=$(realpath "$0")
count=$1 program=$2

skip() {
  echo "skipped: $1"
  exit 77
}

[ "$(id -u)" = 0 ] || skip 'only root can make network namespaces'
command -v ip >/dev/null || skip 'there is no ip (package iproute2)'
if [ -z "${ATTACK_APART:-}" ]; then
  unshare -mn true 2>/dev/null || skip 'no namespaces can be made here'
  ATTACK_APART=1 exec unshare -mn --propagation private "$script" "$@"
fi

# All that is made here is gone with this namespace.
mount -t tmpfs tmpfs /run || skip 'nothing can be mounted'
mkdir -p /run/netns
ip link set lo up
{ echo 1 >/proc/sys/net/ipv4/ip_forward; } 2>/dev/null || skip 'nothing can be forwarded here'
names=()
for ((i = 1; i <= count; i++)); do
  ip netns add net$i
  ip link add veth$i type veth peer name peer$i
  ip link set peer$i netns net$i
  ip addr add 10.79.$i.1/24 dev veth$i
  ip link set veth$i up
  ip -n net$i addr add 10.79.$i.2/24 dev peer$i
  ip -n net$i link set peer$i up
  ip -n net$i link set lo up
  ip -n net$i route add default via 10.79.$i.1
  names+=("/run/netns/net$i")
done
for file in /proc/sys/net/ipv4/conf/*/rp_filter; do echo 0 >"$file"; done
exec "$program" "${names[@]}"
