#!/usr/bin/env bash
# The timeline of collectives on memory of GPUs: the wait for the data, the queue, and what has carried
# the call. The GPUs are stand-ins.
#
#     gpu_timeline.sh ELASTIC TRAINER CUDA NCCL
. "$(dirname "$0")/../shell/lib.sh"
. "$(dirname "$0")/../shell/gpu.sh"
gpu_begin "$@"

# look FILE LANE:NAME...: the file holds such events
look() {
  local file=$1
  shift
  python3 "$(dirname "$script")/../shell/timeline.py" "$file" --has "$@" >looked 2>&1 || die "$(cat looked)"
}

start_gpu_trainers -np 4 -H 127.0.0.1:2,127.0.0.2:2 --timeline-filename nccl.json --
await_round 4
await_nccl
stop_gpu_trainers
look nccl.json phases:'queue' phases:'wait for rank'
grep -q '"by":"nccl"' nccl.json || die 'no call went by NCCL'
new_job

start_gpu_trainers -np 2 -H 127.0.0.1:2 --gpu-operations cpu --timeline-filename host.json --
await_round 2
await_training
stop_gpu_trainers
look host.json phases:'wait for data' phases:'copy to the device'
grep -q '"by":"through the host"' host.json || die 'no call went through the host'
say_line "by NCCL and through the host: $(cat looked)"
