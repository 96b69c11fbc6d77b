#!/usr/bin/env bash
# Where commits of state in the memory of GPUs go: to a copy there and then to the host, to the host at
# once, or to the device only. Workers are killed each time, one and then all but one: what is left has
# what they had, and all have the same weights in the end. The GPUs are stand-ins.
#
#     gpu_commits.sh ELASTIC CADET CUDA NCCL
. "$(dirname "$0")/../shell/lib.sh"
. "$(dirname "$0")/../shell/gpu.sh"
gpu_begin "$@"

kill_but() { # HOW-MANY live on
  local pids
  mapfile -t pids < <(workers | shuf)
  kill -KILL "${pids[@]:$1}" 2>/dev/null
}

# commit_to WHERE WORDS...
commit_to() {
  start_gpu_trainers --commit-to "$1" -np 4 -H 127.0.0.1:2,127.0.0.2:2 -- "${@:2}"
  await_round 4
  await_training
  kill_but 3
  await_round 4
  await_training
  kill_but 1
  await_round 4
  await_training
  stop_gpu_trainers
  say_line "$*: the last round was $round"
  new_job
}

for where in both host device; do
  commit_to $where
  commit_to $where --async --stream
done
