#!/usr/bin/env bash
# --data-security auto chooses encryption: two network namespaces, between which 200 Mbit/s fit. A transfer of 1 MiB takes
# 42 ms there, so to encrypt it costs far less than a tenth.
#
#     link_auto.sh LINK_AUTO
set -euo pipefail
. "$(dirname "$0")/../shell/networks.sh"
net=10.79
networks_alone "$@"
command -v tc >/dev/null || skip 'there is no tc (package iproute2)'
for i in 1 2; do
  network_join $i
  tc -n net$i qdisc add dev peer$i root tbf rate 200mbit burst 128kb latency 100ms 2>/dev/null ||
    skip 'this kernel cannot limit the rate of a device (tbf)'
done
exec "$1" /run/netns/net1 /run/netns/net2
