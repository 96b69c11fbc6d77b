#!/usr/bin/env bash
# SIGSTOP to an agent: its lease runs out, its host is lost, the others go on. When it wakes its
# workers, which were counted as dead, die; then the host is used again.
#
#     freeze_agent.sh ELASTIC TRAINER TIMES
. "$(dirname "$0")/../shell/lib.sh"
test_begin "$@"
times=$3

start -np 4 --min-np 2 -H 127.0.0.1:2,127.0.0.2:2 --beat 100ms --lease 5s \
  "$trainer" --step-ms 5 --say "$say"
await_round 4
for ((i = 1; i <= times; i++)); do
  mapfile -t pids < <(workers HVD_HOST=127.0.0.2)
  [ ${#pids[@]} = 2 ] || die "freeze $i: ${#pids[@]} workers run on 127.0.0.2, not 2"
  find_agent 127.0.0.2
  kill -STOP "$agent"
  await_round 2
  kill -CONT "$agent"
  for pid in "${pids[@]}"; do
    await_end "$pid" || die "freeze $i: the worker $pid lives on beside its successor"
  done
  await_round 4
done
ask stop || die "stop: exit code $?"
finish 143
say_line "$times agents frozen; the last round was $round"
