#!/usr/bin/env bash
# SIGKILL to an agent, again and again: its workers die with it, the host is used again.
#
#     kill_agent.sh ELASTIC TRAINER TIMES
. "$(dirname "$0")/../shell/lib.sh"
test_begin "$@"
times=$3

start -np 4 --min-np 2 -H 127.0.0.1:2,127.0.0.2:2 "$trainer" --step-ms 2 --say "$say"
await_round 4
for ((i = 1; i <= times; i++)); do
  host=127.0.0.$((1 + RANDOM % 2))
  mapfile -t pids < <(workers "HVD_HOST=$host")
  [ ${#pids[@]} = 2 ] || die "kill $i: ${#pids[@]} workers run on $host, not 2"
  find_agent "$host"
  kill -KILL "$agent"
  for pid in "${pids[@]}"; do
    await_end "$pid" || die "kill $i: the worker $pid outlives its agent"
  done
  await_round 4
done
ask stop || die "stop: exit code $?"
finish 143
say_line "$times agents killed; the last round was $round"
