#!/usr/bin/env bash
# SIGKILL to a worker, again and again: the others go on, another takes its place, nothing is left.
#
#     kill_worker.sh ELASTIC TRAINER TIMES
. "$(dirname "$0")/../shell/lib.sh"
test_begin "$@"
times=$3

start -np 4 --min-np 2 -H 127.0.0.1:2,127.0.0.2:2 "$trainer" --step-ms 2 --say "$say"
await_round 4
for ((i = 1; i <= times; i++)); do
  mapfile -t pids < <(workers)
  [ ${#pids[@]} = 4 ] || die "kill $i: ${#pids[@]} workers run, not 4"
  kill -KILL "${pids[RANDOM % 4]}"
  await_round 4
done
ask stop || die "stop: exit code $?"
finish 143
say_line "$times workers killed; the last round was $round"
