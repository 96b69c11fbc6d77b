#!/usr/bin/env bash
# Collectives between two networks, between which packets vanish without a word: two network
# namespaces that reach each other through this one, until it forwards no more.
#
#     coll_networks.sh COLLABORT [TRIALS]
set -euo pipefail
. "$(dirname "$0")/../shell/networks.sh"
net=10.79
networks_alone "$@"
network_join 1
network_join 2
exec "$1" "${2:-6}" --networks /run/netns/net1 /run/netns/net2
