#!/usr/bin/env bash
# A job whose hosts are reached by IPv6 addresses, in two network namespaces with a real sshd each, and a stranger on the
# router between them who holds connections to every port of the job, with the beginning of a handshake. The harm that
# is looked for: an address is misread and some port is open to him, training stops, a worker cannot join, a
# host is blamed, a sum is wrong.
#
#     six_networks.sh ELASTIC CHAOS_TRAINER FLOOD
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/../shell/networks.sh"
# Workers and the stranger share what the driver's address may hold, so a worker may dial again, which takes it a second.
FACTOR=20 LEAST_MS=5000
six=fd77
attack_sizes "$3"
networks_begin "$@"
trap 'flood_end; clean_up' EXIT

# list COUNT: so many workers, one of them on the first host.
list() {
  printf '[%s:1::2]:1\n[%s:2::2]:%d\n' $six $six $(($1 - 1)) >hosts.new
  mv hosts.new hosts.now
}

resume() {
  over --env CHAOS_ARENA="$folder/arena" --env HVD_CHAOS_STEPS="$steps" -np "$began_with" --min-np 2 \
    --max-np unlimited --gather 0s --lease "$LEASE" --host-discovery-script ./hosts.sh "$trainer" --step-ms 5 --state-kib 1024
}

# ports HOST PID...: where these processes listen, by IPv6.
ports() {
  local host=$1 pid
  shift
  for pid in "$@"; do
    find "/proc/$pid/fd" -type l -printf '%l\n' 2>/dev/null | sed -n 's/^socket:\[\(.*\)\]$/\1/p' |
      awk 'NR == FNR { inode[$1]; next } $4 == "0A" && $10 in inode { sub(".*:", "", $2); print $2 }' - "/proc/$pid/net/tcp6"
  done | sort -u | while read -r port; do printf '[%s]:%d\n' "$host" "0x$port"; done
}

begin_job 2
joins 3
peace_joined=$joined peace_pause=$pause
mapfile -t words < <(ports $six:1::1 "$driver")
for n in 1 2; do
  mapfile -t here < <(workers "HVD_HOST=$six:$n::2")
  mapfile -t -O ${#words[@]} words < <(ports $six:$n::2 "${here[@]}" "$(parent "${here[0]}")")
done
say_line "the ports: ${words[*]}"
[ ${#words[@]} -ge 5 ] || die 'driver, two agents and two workers do not all listen at an IPv6 address'
RATE=500 flood_ports --speak "${words[@]}"
joins 3
at_most 'a worker joins' "$joined" "$peace_joined"
at_most 'the longest pause of the members' "$pause" "$peace_pause"
no_harm
flood_end
: >arena/stop
ended 0
[ ! -s arena/wrong ] || die "the training went wrong: $(cat arena/wrong)"
