#!/usr/bin/env bash
# A profiler that takes NVTX ranges: the ranges of a job are the events of its timeline, by name and bytes, over a kill
# and a new round; without a profiler, or where ranges are turned off, nothing; and a profiler that cannot be used is
# named once by each worker and stops none.
#
#     nvtx.sh ELASTIC TRAINER RECORDER
. "$(dirname "$0")/../shell/lib.sh"
# shellcheck source=tests/shell/train.sh
. "$(dirname "$0")/../shell/train.sh"
recorder=$(realpath "$3")
test_begin "$@"
look=$(dirname "$script")/../shell/nvtx.py
steps=300

# train RECORDER WORDS...: four ranks under the profiler, which writes to $record
train() {
  export NVTX_INJECTION64_PATH=$1 NVTX_RECORD=$record
  shift
  final=$folder/$job.final
  made=$folder/$job.made
  mkdir -p "$record"
  start -np 4 --min-np 2 -H 127.0.0.1:2,127.0.0.2:2 --timeline-filename t.json "$@" -- "$trainer" --step-ms 2 \
    --say "$say" --made "$made" --final "$final" --steps "$steps" --slow-until "$go"
}

# ---- over a kill ------------------------------------------------------------------------------------

record=$folder/kill
train "$recorder"
await_round 4
await_step 40
kill_rank 1
finish 0
all_right $steps
python3 "$look" "$record" t.json >looked 2>&1 || die "$(cat looked)"
say_line "$(cat looked)"
grep -q 'start [0-9]* 1 [1-9][0-9]* allreduce$' "$record"/* || die 'no allreduce tells its bytes'
for name in 'round 1' 'round 2' 'step 1' 'step 20' 'commit 1\.[0-9]*' 'restore 1\.[0-9]*'; do
  grep -q "start [0-9]* 1 [0-9]* $name\$" "$record"/* || die "no range $name"
done

# ---- turned off -------------------------------------------------------------------------------------

steps=20
for off in --disable-nvtx-ranges HOROVOD_DISABLE_NVTX_RANGES; do
  new_job
  record=$folder/off
  if [ "$off" = --disable-nvtx-ranges ]; then
    train "$recorder" "$off"
  else
    export "$off=1"
    train "$recorder"
    unset "$off"
  fi
  finish 0
  all_right $steps
  [ -z "$(ls "$record")" ] || die "$off: $(head -3 "$record"/*)"
done

# ---- that cannot be used ----------------------------------------------------------------------------

new_job
record=$folder/none
train "$folder/none.so"
finish 0
all_right $steps
[ "$(cat "$err" "$out" | grep -cF "NVTX_INJECTION64_PATH names \"$folder/none.so\": cannot open")" = 4 ] ||
  die "not said by each worker once: $(grep NVTX "$err" "$out")"
new_job
export NVTX_RECORDER=refuses
train "$recorder"
finish 0
all_right $steps
grep -qF 'the library did not start; the profiler shows no ranges' "$err" "$out" || die 'nobody says that the profiler refuses'
