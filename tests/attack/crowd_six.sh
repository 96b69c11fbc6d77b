#!/usr/bin/env bash
# A whole job on the IPv6 loopback, and a stranger there who holds connections to every port of it, with the beginning
# of a handshake. All of one /64 network are one source, and so are the strangers and the job itself here. The
# harm that is looked for: training stops, a worker cannot join, the host is blamed.
#
#     crowd_six.sh ELASTIC CHAOS_TRAINER FLOOD
. "$(dirname "$0")/lib.sh"
# Strangers and workers are one source, so a worker may have to dial again, which takes it a second.
FACTOR=20 LEAST_MS=3000
attack_begin "$@"
grep -q '^0\{31\}1 ' /proc/net/if_inet6 2>/dev/null || skip 'the machine has no IPv6 loopback'

# One host, and as many slots as are wanted.
list() {
  echo "[::1]:$1" >hosts.new
  mv hosts.new hosts.now
}

begin_job 2
joins 3
peace_joined=$joined peace_pause=$pause
# shellcheck disable=SC2046 # words
ports=$(listening_six "$driver" $(agents) $(workers) | xargs)
say_line "the ports: $ports"
# shellcheck disable=SC2086 # words
RATE=1000 flood_ports --speak $ports
joins 3
at_most 'a worker joins' "$joined" "$peace_joined"
at_most 'the longest pause of the members' "$pause" "$peace_pause"
no_harm
end_job
