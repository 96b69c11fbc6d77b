#!/usr/bin/env bash
# Hosts with GPUs come to a training and go: nothing is made again, as the next communicator is prepared
# beside the running one. One that has no NCCL takes part, through the memory of the hosts. The GPUs are
# stand-ins.
#
#     gpu_changes.sh ELASTIC CADET CUDA NCCL
. "$(dirname "$0")/../shell/lib.sh"
. "$(dirname "$0")/../shell/gpu.sh"
gpu_begin "$@"

list_hosts() { # HOST... : by the last number of their addresses
  printf '127.0.0.%s:2\n' "$@" >"$folder/hosts.new"
  mv "$folder/hosts.new" "$folder/hosts"
}
printf '#!/bin/sh\ncat %q\n' "$folder/hosts" >"$folder/discover"
chmod +x "$folder/discover"

# never_back: no step was made twice, in no round.
never_back() {
  awk '{ if (seen[$3 " " $4]++) print }' "$made" >"$folder/twice"
  [ ! -s "$folder/twice" ] || die "made twice: $(head -n 3 "$folder/twice")"
}

join_and_leave() {
  list_hosts 1
  start_gpu_trainers -np 2 --max-np 6 --host-discovery-script "$folder/discover" -- "$@"
  await_round 2
  await_nccl
  list_hosts 1 2
  await_round 4
  await_nccl
  list_hosts 1 2 3
  await_round 6
  await_nccl
  ask drain 127.0.0.2 >/dev/null || die "drain: exit code $?"
  await_round 4
  await_nccl
  list_hosts 1 3
  ask drain 127.0.0.1 >/dev/null || die "drain: exit code $?"
  await_round 2
  await_nccl
  stop_gpu_trainers
  never_back
  ! grep 'is revoked' "$err" || die 'a round was revoked'
  say_line "joined and left${*:+ ($*)}: the last round was $round"
}

without_nccl() {
  list_hosts 1 2
  # shellcheck disable=SC2016 # for that shell
  wrapper=(sh -c '[ "$HVD_HOST" = 127.0.0.1 ] || export HVD_NCCL_LIBRARY=/none; exec "$0" "$@"')
  start_gpu_trainers -np 4 --host-discovery-script "$folder/discover" --
  await_round 4
  await_training
  kill -KILL "$(workers | shuf -n 1)"
  await_round 4
  await_training
  stop_gpu_trainers
  ! grep -vE ' 0 0$' "$made" || die 'a communicator without NCCL on all hosts'
  [ "$(grep -c 'go through the host: NCCL cannot be used in this group: .*/none' "$err")" = 1 ] ||
    die 'that it goes through the hosts is to be told once'
  wrapper=()
  say_line 'a host without NCCL: through the hosts'
}

# A worker that is launched while a lower slot is empty has the local rank of that slot for a while, but never its GPU.
each_slot_has_its_gpu() {
  local pid
  HVD_STANDIN_DEVICES=3
  start_gpu_trainers -np 3 -H 127.0.0.1:3 --gpu-operations nccl --
  await_round 3
  ask drain 127.0.0.1:0 >/dev/null || die "drain: exit code $?"
  await_round 2
  for pid in $(workers); do
    ! grep -qzx 'HVD_SLOT=1' "/proc/$pid/environ" || break
  done
  kill -KILL "$pid"
  await "$err" '127.0.0.1:1#[0-9]+: killed by signal 9'
  await_round 2
  ask undrain 127.0.0.1:0 >/dev/null || die "undrain: exit code $?"
  await_round 3
  await_nccl
  stop_gpu_trainers
  say_line 'a GPU for each slot'
}

join_and_leave
new_job
join_and_leave --stream --async
new_job
each_slot_has_its_gpu
new_job
without_nccl
