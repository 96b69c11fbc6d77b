#!/usr/bin/env bash
# The last thing that all members of a training do is to queue a collective in a stream; then train
# returns 0, and something befalls a GPU in that collective. They are not done: they go back and end again,
# in another round. Where one is just late, the others stay until it has what they have given, and all are
# done. The GPUs are stand-ins.
#
#     gpu_last.sh ELASTIC CADET CUDA NCCL FAULT...
#
# FAULT is as in tests/standin/standin.h.
. "$(dirname "$0")/../shell/lib.sh"
. "$(dirname "$0")/../shell/gpu.sh"
gpu_begin "$@"
shift 4

last_round() { awk '$2 > last { last = $2 } END { print last }' "$say"; }

for fault in "$@"; do
  start_gpu_trainers -np 4 -H 127.0.0.1:2,127.0.0.2:2 -- --stream --last "$folder/fault"
  await_round 4
  await_nccl
  echo "$fault" >"$folder/fault"
  stop_gpu_trainers
  [ -s "$folder/fault.taken" ] || die "$fault: it has befallen nobody"
  if [[ $fault = *:late* ]]; then
    [ "$(last_round)" = "$round" ] || die "$fault: it has failed in round $round"
    [ "$(wc -l <"$final")" = 4 ] || die "$fault: not all have come to the end: $(cat "$final")"
    say_line "$fault: all have ended in round $round"
    rm "$folder/fault.taken"
    new_job
    continue
  fi
  [ "$(last_round)" -gt "$round" ] || die "$fault: they have ended in round $round, in which it failed"
  say_line "$fault: round $round failed in its last collective, and $(last_round) is the one that ended"
  rm "$folder/fault.taken"
  new_job
done
