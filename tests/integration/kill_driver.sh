#!/usr/bin/env bash
# SIGKILL to the driver, again and again, and the same command line again: the next one takes over,
# no worker is started anew, and their round is the same. In the end --resume without a command.
#
#     kill_driver.sh ELASTIC TRAINER TIMES
. "$(dirname "$0")/../shell/lib.sh"
test_begin "$@"
times=$3

begin() {
  start -np 4 --min-np 2 -H 127.0.0.1:2,127.0.0.2:2 "$trainer" --step-ms 5 --say "$say"
}

# The n-th takeover: both agents are there, with all of their workers. An agent may come twice to one driver.
adopted() {
  local host
  for host in 127.0.0.1 127.0.0.2; do
    await_after "$err" 'is taken over' "$1" "$host: (the|an) agent of this host (is back|says hello) with 2 workers"
  done
}

begin
await_round 4
before=$(workers)
spent=()
for ((i = 1; i <= times; i++)); do
  kill_driver
  began=$EPOCHREALTIME
  begin
  adopted "$i"
  spent+=($(((${EPOCHREALTIME/[.,]/} - ${began/[.,]/}) / 1000)))
  [ "$(workers)" = "$before" ] || die "kill $i: workers were started anew"
done
[ "$(awk '{ print $2 }' "$say" | sort -u)" = "$round" ] || die "the round has changed: $(cat "$say")"

# it is still one that leads: a worker that dies is replaced
kill -KILL "$(workers | head -n 1)"
await_round 4

kill_driver
BODY_TEST=$folder "$elastic" --resume "$job" --state-dir "$state" >>"$out" 2>>"$err" </dev/null &
driver=$!
adopted $((times + 1))
ask stop || die "stop: exit code $?"
finish 143
mapfile -t spent < <(printf '%s\n' "${spent[@]}" | sort -n)
say_line "$times drivers killed; from the start of the next until both agents are back with all workers:" \
  "median ${spent[times / 2]} ms, most ${spent[times - 1]} ms"
