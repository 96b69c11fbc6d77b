#!/usr/bin/env bash
# A peer dies while the driver is away, and a GPU does not end what the round has begun on it: its process
# knows that it is of no more use, though its loop waits for ever. Its agent ends it meanwhile; the driver that
# comes back is told why, and all train again. A process that finds it out at its end just ends. The GPUs are stand-ins.
#
#     gpu_stuck.sh ELASTIC CADET CUDA NCCL
. "$(dirname "$0")/../shell/lib.sh"
. "$(dirname "$0")/../shell/gpu.sh"
gpu_begin "$@"

# a device that hangs is given up after that time
limits=(--gpu-timeout 3s)
begin() { start_gpu_trainers -np 4 -H 127.0.0.1:2,127.0.0.2:2 -- --befall "$folder/fault"; }

begin
await_round 4
await_nccl
befall revoke:hang
kill_driver
kill_other
await_end "$victim" || die 'the process that is of no more use lives on'
! grep 'the worker cannot go on' "$err" || die 'somebody knew of it before there was a driver again'
begin
await "$err" " job: [^ ]+#$number: the worker cannot go on: stand-in device"
await_round 4 "$number"
await_training
stop_gpu_trainers
say_line "ended while there was no driver: $(sed -n 's/.*job: [^ ]*: the worker cannot go on: //p' "$err" | head -n 1)"

# It comes to light only at the end, when no agent is left to be told: the training is done all the same.
new_job
begin
await_round 4
await_nccl
befall abort:hang
stop_gpu_trainers
! grep 'ended by\|the worker cannot go on\|killed by' "$err" || die 'somebody was ended at the end'
say_line 'found in hvd_shutdown: nobody has to know'
