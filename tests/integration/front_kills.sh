#!/usr/bin/env bash
# The driver and a worker are killed at the same moment, and no person starts a driver: the process in front does. The
# time until the other workers train without the dead one. TIMES 100 is the campaign: the figures are printed.
#
#     front_kills.sh ELASTIC TRAINER TIMES [SEED]
. "$(dirname "$0")/../shell/lib.sh"
test_begin "$@"
times=$3
seed=${4:-$$}
RANDOM=$seed
say_line "seed $seed"
unset HVD_RESTART
window=62 # seconds, a little more than the minute in which the process in front starts at most so many drivers
starts=30

# await_others ROUND LINE: until all members of a round after ROUND have entered it, by the lines of the trainers from
# LINE on. In $next.
await_others() {
  local incarnation number rank size lines reader
  local -A entered=()
  exec {lines}< <(exec tail -n "+$2" -s $NAP -f "$say")
  reader=$!
  next=''
  while [ -z "$next" ] && read -r -t "$PATIENCE" -u "$lines" incarnation number rank size; do
    entered[$number]=$((${entered[$number]:-0} + 1))
    if [ "$number" -gt "$1" ] && [ "${entered[$number]}" -ge "$size" ]; then next=$number; fi
  done
  exec {lines}<&-
  kill "$reader" 2>/dev/null
  : "$incarnation" "$rank"
}

start -np 4 --min-np 2 -H 127.0.0.1:2,127.0.0.2:2 "$trainer" --step-ms 5 --say "$say"
await_round 4
began=$SECONDS
for ((i = 1; i <= times; i++)); do
  # The limit on starts in a minute is not what is measured.
  if [ $((i % starts)) = 0 ] && [ $((SECONDS - began)) -lt $window ]; then
    timeout $((window - SECONDS + began)) tail -f /dev/null
    began=$SECONDS
  fi
  child=$(pgrep -P "$driver")
  [ -n "$child" ] || die "kill $i: the process $driver has no child"
  mapfile -t all < <(workers)
  victim=${all[RANDOM % ${#all[@]}]}
  gone=$(variable "$victim" HVD_INCARNATION)
  line=$(($(wc -l <"$say") + 1))
  killed=${EPOCHREALTIME/[.,]/}
  kill -KILL "$child" "$victim"
  await_others "$round" "$line"
  echo $(((${EPOCHREALTIME/[.,]/} - killed) / 1000)) >>out_after
  [ -n "$next" ] || die "kill $i: no round without worker $gone"
  grep -q "^$gone $next " "$say" && die "kill $i: the dead worker $gone is in round $next"
  await_round 4
  await_after "$err" "the driver \\(pid $child\\) died of signal 9" 1 'all 4 train'
done
sort -n out_after | awk '{ number[NR] = $1 }
  function rank(part) { part = int(NR * part + 0.999999); return number[part < 1 ? 1 : part] }
  END { printf "%d kills: a dead worker is out after %d ms (median), %d ms (p99), %d ms (most)\n",
    NR, rank(0.5), rank(0.99), number[NR] }'
ask stop || die "stop: exit code $?"
await_driver
[ "$code" = 143 ] || die "stop: exit code $code, not 143"
nothing_left
