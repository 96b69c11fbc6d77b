#!/usr/bin/env bash
# A host is silent when its job ends. The command returns at once with its exit code, and a process without a terminal and
# without a file of the job waits for the host's agent: it wakes up, is told that the job is over, and ends with its workers.
#
#     late_host.sh ELASTIC TRAINER
. "$(dirname "$0")/../shell/lib.sh"
test_begin "$@"

begin() {
  start -np 4 --min-np 2 -H 127.0.0.1:2,127.0.0.2:2 --beat 100ms --lease 5s "$@" "$trainer" --step-ms 5 --say "$say"
  await_round 4
  mapfile -t pids < <(workers HVD_HOST=127.0.0.2)
  [ ${#pids[@]} = 2 ] || die "${#pids[@]} workers run on 127.0.0.2, not 2"
  find_agent 127.0.0.2
  kill -STOP "$agent"
  await_round 2
  ask stop || die "stop: exit code $?"
  : >"$go"
  await_driver
  [ "$code" = 143 ] || die "the driver's exit code is $code, not 143"
  late=$(sed -n 's/.*process \([0-9]*\) of this machine tells them as soon as they connect.*/\1/p' "$err")
}

begin
[ -n "$late" ] || die 'no process waits for 127.0.0.2'
is_alive "$late" || die "process $late is not there"
left=$(find "/proc/$late/fd" -type l -lname "$folder/*")
[ -z "$left" ] || die "process $late holds files of the job: $(ls -l "/proc/$late/fd")"
[ "$(sed 's/.*) //' "/proc/$late/stat" | cut -d ' ' -f 4)" = "$late" ] || die "process $late is in the session of the test"

# Meanwhile the next job begins in the folder.
BODY_TEST=$folder "$elastic" --job next --state-dir "$state" -np 1 -H 127.0.0.1:1 true >next.out 2>&1 ||
  die "no job can begin in the folder: $(cat next.out)"

kill -CONT "$agent"
for pid in "${pids[@]}"; do await_end "$pid" || die "the worker $pid lives on after its job"; done
nothing_left

# An agent that dies is not waited for without an end.
new_job
begin --driver-grace 6s
[ -n "$late" ] || die 'no process waits for 127.0.0.2 of the second job'
for pid in "${pids[@]}" "$agent"; do kill -KILL "$pid"; done
nothing_left
say_line "process $late has told a late agent the end of its job, and has not waited for a dead one for ever"
