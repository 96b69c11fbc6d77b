#!/usr/bin/env bash
# Workers whose state and gradients lie in the memory of GPUs are killed at random moments, rank 0 too,
# two at once, and while the others recover: the job lives, every sample is used once in each epoch, and
# all have the same weights. The GPUs are stand-ins.
#
#     gpu_kills.sh ELASTIC CADET CUDA NCCL TIMES [SEED]
. "$(dirname "$0")/../shell/lib.sh"
. "$(dirname "$0")/../shell/gpu.sh"
gpu_begin "$@"
times=$5
seed=${6:-$$}
RANDOM=$seed
say_line "seed $seed"

# kill_some HOW-MANY DELAY: any of them; with the delay between them.
kill_some() {
  local pids pid
  mapfile -t pids < <(workers | shuf -n "$1" --random-source=<(yes "$RANDOM"))
  for pid in "${pids[@]}"; do
    kill -KILL "$pid" 2>/dev/null && killed=$((killed + 1))
    [ "$2" = 0 ] || timeout "$2" tail -f /dev/null
  done
}

# kill_many WORDS...: of gpu_trainers that train with WORDS.
kill_many() {
  killed=0
  start_gpu_trainers -np 4 -H 127.0.0.1:2,127.0.0.2:2 -- "$@"
  await_round 4
  while [ $killed -lt "$times" ]; do
    if [ $((RANDOM % 3)) = 0 ]; then await_training; else await_nccl; fi
    case $((RANDOM % 4)) in
      0) kill_some 2 0 ;;
      1) kill_some 2 "0.0$((1 + RANDOM % 4))" ;; # the second while the others recover from the first
      *) kill_some 1 0 ;;
    esac
    is_alive "$driver" || die "seed $seed: the job is over after $killed kills"
    await_round 4
  done
  await_nccl
  stop_gpu_trainers
  say_line "$killed workers killed${*:+ ($*)}; the last round was $round; $(awk 'NR == 1 { print $3 }' "$final") steps"
}

kill_many
new_job
kill_many --stream --async
