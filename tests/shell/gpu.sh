# shellcheck shell=bash disable=SC2154,SC2034
# For tests of training on GPUs, after lib.sh and train.sh: a job of gpu_trainer, on the stand-ins of the
# CUDA driver and of NCCL.

# gpu_begin ELASTIC CADET CUDA NCCL: as test_begin.
gpu_begin() {
  export HVD_CUDA_LIBRARY HVD_NCCL_LIBRARY HVD_STANDIN_DEVICES=2
  HVD_CUDA_LIBRARY=$(realpath "$3")
  HVD_NCCL_LIBRARY=$(realpath "$4")
  test_begin "$1" "$2"
  for library in "$HVD_CUDA_LIBRARY" "$HVD_NCCL_LIBRARY"; do
    [ -r "$library" ] || die "there is no $library"
  done
}

# Time limits of the driver that end a hang which is part of the test, as in train.sh.
limits=()

# start_gpu_trainers WORDS... -- WORDS...: of the driver and of the program, which is started by $wrapper; they
# train until $folder/stop is there.
wrapper=()
start_gpu_trainers() {
  local words=()
  final=$folder/$job.final
  made=$folder/$job.made
  while [ "$1" != -- ]; do
    words+=("$1")
    shift
  done
  shift
  start --min-np 1 "${limits[@]}" "${words[@]}" -- "${wrapper[@]}" \
    "$trainer" --stop "$folder/stop" --say "$say" --made "$made" --final "$final" "$@"
}

# await_training: until a step is made in round $round, or in one that has followed it; await_nccl: until NCCL has made
# the sum of such a step. A communicator alone may still be starting on another member.
await_training() { await "$made" "^($(seq -s '|' "$round" $((round + 50)))) "; }
await_nccl() { await "$made" "^($(seq -s '|' "$round" $((round + 50)))) [0-9]+ [0-9]+ [0-9]+ [0-9]+ 1$"; }

# befall FAULT: some gpu_trainer of those that were told --befall $folder/fault gets it: the process $victim, which is the worker $number.
befallen=0
befall() {
  befallen=$((befallen + 1))
  echo "$1" >"$folder/fault.new"
  mv "$folder/fault.new" "$folder/fault"
  await "$folder/fault.taken" . $befallen
  read -r victim number _ < <(tail -n 1 "$folder/fault.taken")
}

# kill_other: one that is not the victim, so that there is another round.
kill_other() {
  local pid
  for pid in $(workers | shuf); do
    [ "$pid" = "$victim" ] || { kill -KILL "$pid" 2>/dev/null && return; }
  done
  die 'there is nobody else to be killed'
}

# stop_gpu_trainers: they come to the end, all of them with the same, and nothing is left.
stop_gpu_trainers() {
  : >"$folder/stop"
  finish 0
  ! grep 'gpu_trainer: wrong' "$err" || die 'a gpu_trainer has found something wrong'
  [ -s "$final" ] || die 'nobody came to the end'
  [ "$(sed 's/^[0-9]* [0-9]* //' "$final" | sort -u | wc -l)" = 1 ] || die "different ends: $(cat "$final")"
  rm "$folder/stop"
}
