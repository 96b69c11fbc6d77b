#!/usr/bin/env bash
# Collectives between two networks, between which packets vanish without a word: two network
# namespaces that reach each other through this one, until it forwards no more.
#
#     coll_networks.sh COLLABORT [TRIALS]
set -euo pipefail
script=$(realpath "$0")

skip() {
  echo "skipped: $1"
  exit 77
}

[ "$(id -u)" = 0 ] || skip 'only root can make network namespaces'
command -v ip >/dev/null || skip 'there is no ip (package iproute2)'
if [ -z "${COLL_NETWORKS:-}" ]; then
  unshare -mn true 2>/dev/null || skip 'no namespaces can be made here'
  COLL_NETWORKS=1 exec unshare -mn --propagation private "$script" "$@"
fi

# All that is made here is gone with this namespace.
mount -t tmpfs tmpfs /run || skip 'nothing can be mounted'
mkdir -p /run/netns
ip link set lo up
{ echo 1 >/proc/sys/net/ipv4/ip_forward; } 2>/dev/null || skip 'nothing can be forwarded here'
for i in 1 2; do
  ip netns add net$i
  ip link add veth$i type veth peer name peer$i
  ip link set peer$i netns net$i
  ip addr add 10.79.$i.1/24 dev veth$i
  ip link set veth$i up
  ip -n net$i addr add 10.79.$i.2/24 dev peer$i
  ip -n net$i link set peer$i up
  ip -n net$i link set lo up
  ip -n net$i route add default via 10.79.$i.1
done
exec "$1" "${2:-6}" --networks /run/netns/net1 /run/netns/net2
