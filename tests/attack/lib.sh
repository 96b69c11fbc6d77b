# shellcheck shell=bash
# For attacks on a job on hosts of the loopback. Sourced by tests/attack/*.sh:
#
#     . "$(dirname "$0")/lib.sh"
#     attack_begin "$@"                 # ELASTIC CHAOS_TRAINER FLOOD
#     begin_job 3                       # trains on 127.0.0.1 to 127.0.0.3, one worker each
#     join 4; peace=$joined             # in ms; $pause is the longest time without a step
#     flood_ports 600 $(listening $(agents))
#     join 4; at_most 'a join' "$joined" "$peace"
#     no_harm                           # no round was revoked, no host was blamed
#     end_job
#
# Times are compared with times of peace in the same run only. ATTACK=large takes larger numbers.
. "$(dirname "${BASH_SOURCE[0]}")/../shell/lib.sh"

# How many times as long as in peace a thing may take. A machine that is shared is not exact; the harm that these
# attacks did was a hundredfold.
FACTOR=5
# So many ms are no harm in any case: a busy machine takes them by itself. The shortest pause of an attack was 2.7 s.
LEAST_MS=1000
# In the small form other tests run beside, now many and now few, so a ratio says nothing: the bound is that of a hang.
HANG_MS=$((PATIENCE * 1000))

attack_begin() {
  attack_sizes "$3"
  test_begin "$1" "$2"
  trap 'flood_end; clean_up' EXIT
}

# attack_sizes FLOOD: how large the attack is.
attack_sizes() {
  flood=$(realpath "$1")
  connections=600 # to each port
  times=2         # joins in peace, and at least so many under attack
  seconds=0       # how long an attack lasts at least
  flood_pids=()
  if [ "${ATTACK:-small}" = large ]; then
    connections=5000 times=8 seconds=${ATTACK_SECONDS:-60}
  fi
}

# must_be_alone: on a loopback that is shared, an observer would hear other tests, and dial their ports.
must_be_alone() { [ -n "${OWN_NETWORK:-}" ] || skip 'no network of its own (tests/shell/own_network.sh)'; }

# ---- the job ---------------------------------------------------------------------------------------

# list COUNT: hosts 127.0.0.1 to 127.0.0.COUNT from now on.
list() {
  seq -f '127.0.0.%g:1' 1 "$1" >hosts.new
  mv hosts.new hosts.now
}

# The lease is long, so that a busy machine that lets a process wait does what no attack may do: end a round.
LEASE=2m

# resume: starts a driver of the job; the first, or the successor of one that is dead.
resume() {
  CHAOS_ARENA=$folder/arena HVD_CHAOS_STEPS=$steps start -np "$began_with" --min-np 2 --max-np unlimited --gather 0s \
    --lease "$LEASE" --host-discovery-script ./hosts.sh "$trainer" --step-ms 5 --state-kib 4096
}

# begin_job COUNT: until all COUNT hosts train.
begin_job() {
  began_with=$1
  steps=$folder/steps
  mkdir -p arena
  : >"$steps"
  printf '#!/bin/sh\ncat %s/hosts.now\n' "$folder" >hosts.sh
  chmod +x hosts.sh
  list "$1"
  resume
  train "$1" 100
}

end_job() {
  flood_end
  : >arena/stop
  finish 0
  [ ! -s arena/wrong ] || die "the training went wrong: $(cat arena/wrong)"
}

# train SIZE N: until N further steps of so many members are made.
train() { await "$steps" " $1\$" $(($(grep -c " $1\$" "$steps") + $2)); }

# longest LINE: the longest time from one step to the next since that line of $steps, in ms.
longest() {
  tail -n "+$1" "$steps" | awk 'NR > 1 && $1 - before > most { most = $1 - before }
    { before = $1 } END { printf "%d\n", most / 1000 }'
}

ms_since() { echo $(((${EPOCHREALTIME/[.,]/} - ${1/[.,]/}) / 1000)); }

# join COUNT: host 127.0.0.COUNT is listed, trains, and is taken off the list again. $joined is the time until it has
# trained, $pause the longest time without a step meanwhile, both in ms.
join() {
  local line began
  line=$(wc -l <"$steps")
  began=$EPOCHREALTIME
  list "$1"
  train "$1" 1
  joined=$(ms_since "$began")
  train "$1" 50
  pause=$(longest "$line")
  list $(($1 - 1))
  train $(($1 - 1)) 20
}

# joins COUNT: $times of them, and under attack for $seconds. The median of each of both.
joins() {
  local i all_joined=() all_pauses=() until=$SECONDS
  [ ${#flood_pids[@]} = 0 ] || until=$((SECONDS + seconds))
  for ((i = 0; i < times || SECONDS < until; i++)); do
    join "$1"
    all_joined+=("$joined") all_pauses+=("$pause")
  done
  joined=$(median "${all_joined[@]}")
  pause=$(median "${all_pauses[@]}")
}

median() { printf '%s\n' "$@" | sort -n | sed -n "$((($# + 1) / 2))p"; }

# at_most WHAT MS PEACE: not FACTOR times as long as in peace.
at_most() {
  local least=$LEAST_MS
  [ "${ATTACK:-small}" = large ] || least=$HANG_MS
  say_line "$1: $2 ms under attack, $3 ms in peace"
  [ "$2" -le $(($3 * FACTOR)) ] || [ "$2" -le "$least" ] ||
    die "$1: $2 ms are more than $FACTOR times the $3 ms of peace"
}

# no_harm: since the job began no round was revoked, and no host was charged.
no_harm() {
  local found
  found=$(grep -E 'is revoked|blacklist: .* failed' "$err")
  [ -z "$found" ] || die "the attack has done harm: $found"
}

# ---- the attacker ------------------------------------------------------------------------------------

agents() {
  local pid
  for pid in $(marked); do
    if [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = hvd-agent ]; then echo "$pid"; fi
  done
}

# listening PID...: the TCP ports at which these processes listen, one ADDRESS:PORT a line.
listening() {
  local pid address port
  for pid in "$@"; do
    find "/proc/$pid/fd" -type l -printf '%l\n' 2>/dev/null | sed -n 's/^socket:\[\(.*\)\]$/\1/p'
  done | awk 'NR == FNR { inode[$1]; next } $4 == "0A" && $10 in inode { sub(":", " ", $2); print $2 }' - /proc/net/tcp |
    sort -u | while read -r address port; do
    [ "$address" != 00000000 ] || address=0100007F
    printf '%d.%d.%d.%d:%d\n' "0x${address:6:2}" "0x${address:4:2}" "0x${address:2:2}" "0x${address:0:2}" "0x$port"
  done
}

# listening_six PID...: the same for IPv6, [::1]:PORT.
listening_six() {
  local pid port
  for pid in "$@"; do
    find "/proc/$pid/fd" -type l -printf '%l\n' 2>/dev/null | sed -n 's/^socket:\[\(.*\)\]$/\1/p'
  done | awk 'NR == FNR { inode[$1]; next } $4 == "0A" && $10 in inode { sub(".*:", "", $2); print $2 }' - /proc/net/tcp6 |
    sort -u | while read -r port; do printf '[::1]:%d\n' "0x$port"; done
}

# flood_ports OPTIONS... ADDRESS:PORT...: a stranger dials each of these ports $connections times, until flood_end;
# those that are closed are dialled again. Returns when each port was dialled so often.
flood_ports() {
  local word words=() log=$folder/flood.${#flood_pids[@]}
  for word; do
    case $word in
      *.*:* | *]:*) words+=(--port "$word") ;;
      *) words+=("$word") ;;
    esac
  done
  [[ "${words[*]}" = *--port* ]] || die 'no port was found that can be attacked'
  "$flood" --connections "$connections" --seconds 300 --rate "${RATE:-3000}" "${words[@]}" >"$log" 2>&1 &
  flood_pids+=($!)
  await "$log" '^standing'
}

# flood_end: what it did is printed.
flood_end() {
  local i
  for i in "${!flood_pids[@]}"; do
    kill "${flood_pids[i]}" 2>/dev/null && wait "${flood_pids[i]}"
    grep -v '^standing' "$folder/flood.$i"
  done
  flood_pids=()
}
