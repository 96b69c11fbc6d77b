#!/usr/bin/env bash
# Runs a program between network namespaces: each is a host 10.79.N.2 behind this one, which is the router 10.79.N.1.
# The program gets their names. A router of a good network passes no packet with a source that is not its sender's; this one
# does, as the network of strangers may.
#
#     apart.sh COUNT PROGRAM
set -euo pipefail
# shellcheck source=tests/shell/networks.sh
. "$(dirname "$0")/../shell/networks.sh"
count=$1 program=$2 net=10.79 names=()

networks_alone "$@"
for ((i = 1; i <= count; i++)); do
  network_join $i
  names+=("/run/netns/net$i")
done
for file in /proc/sys/net/ipv4/conf/*/rp_filter; do echo 0 >"$file"; done
exec "$program" "${names[@]}"
