#!/usr/bin/env bash
# --data-security auto chooses encryption: two network namespaces, between which 200 Mbit/s fit. A transfer of 1 MiB takes
# 42 ms there, so to encrypt it costs far less than a tenth.
#
#     link_auto.sh LINK_AUTO
set -euo pipefail
script=$(realpath "$0")

skip() {
  echo "skipped: $1"
  exit 77
}

[ "$(id -u)" = 0 ] || skip 'only root can make network namespaces'
for program in ip tc; do
  command -v $program >/dev/null || skip "there is no $program (package iproute2)"
done
if [ -z "${LINK_AUTO:-}" ]; then
  unshare -mn true 2>/dev/null || skip 'no namespaces can be made here'
  LINK_AUTO=1 exec unshare -mn --propagation private "$script" "$@"
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
  tc -n net$i qdisc add dev peer$i root tbf rate 200mbit burst 128kb latency 100ms 2>/dev/null ||
    skip 'this kernel cannot limit the rate of a device (tbf)'
done
exec "$1" /run/netns/net1 /run/netns/net2
