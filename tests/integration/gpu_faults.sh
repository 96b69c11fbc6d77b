#!/usr/bin/env bash
# Each fault of a GPU or of NCCL strikes a random member of a training, one after the other: in
# each case all members train again soon, in a new round or with a replaced process, and in the end all
# have used every sample once in each epoch. The GPUs are stand-ins.
#
#     gpu_faults.sh ELASTIC CADET CUDA NCCL [--stream] [--async] FAULT...
#
# FAULT is as in tests/standin/standin.h; the options are the gpu_trainers'.
. "$(dirname "$0")/../shell/lib.sh"
. "$(dirname "$0")/../shell/gpu.sh"
gpu_begin "$@"
shift 4
words=()
while [[ $1 = --* ]]; do
  words+=("$1")
  shift
done

# Several of the faults are hangs. A member that the machine holds up for so long is replaced like one that hangs, so
# each wait below is for what becomes of the victim.
limits=(--stall-warning 2s --stall-shutdown 8s --gpu-timeout 3s)
start_gpu_trainers -np 4 -H 127.0.0.1:2,127.0.0.2:2 -- --befall "$folder/fault" "${words[@]}"
await_round 4

# In the end all four train in a round that the victim is not in: what is left of the fault is gone with it.
suffer() {
  await_nccl
  befall "$1"
  case $1 in
    collective:slow*) await_training ;;
    copy* | collective* | device*) await_round 4 ;; # it shows by itself
    revoke:hang | abort:hang) # a process that knows that it is of no more use is replaced
      kill_other
      await "$err" " job: [^ ]+#$number: (the worker cannot go on|the worker has not moved|the other members have waited)"
      await_end "$victim"
      await_round 4 "$number"
      ;;
    *)
      kill_other
      await_round 4
      ;;
  esac
  await_training
  is_alive "$driver" || die "$1: the job is over"
  is_alive "$victim" || return 0
  kill -KILL "$victim" 2>/dev/null
  await_round 4 "$number"
  await_training
}

for fault in "$@"; do
  began=$(date +%s%N)
  suffer "$fault"
  say_line "$fault: $((($(date +%s%N) - began) / 1000000)) ms"
done
stop_gpu_trainers
