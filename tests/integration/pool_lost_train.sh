#!/usr/bin/env bash
# A real training whose whole pool is lost again and again: driver, agents and workers get SIGKILL at once, and the same
# command line is started again. The loss of each step and the parameters at the end are those of the training in peace,
# bit for bit, and each sample of each epoch was used exactly once. With "s3" the checkpoints are in a bucket, whose
# server fails at random. TIMES 100 is the campaign.
#
#     pool_lost_train.sh ELASTIC MLP AUDIT TIMES [SEED [s3]]
. "$(dirname "$0")/../shell/lib.sh"
place=${6:-directory}
[ "$place" != s3 ] || . "$(dirname "$0")/../shell/s3.sh"
audit=$(realpath "$3")
test_begin "$@"
times=$4
seed=${5:-$$}
RANDOM=$seed
say_line "seed $seed"

MOST=16 # times as many steps as at first: no machine is so busy
each=250 # steps from one loss to the next
[ "$place" != s3 ] || each=2000
steps=$((each * (times + 1)))
most=$((MOST * steps))
intervals=(100ms 20c 5c 250ms)

begin() { # CURVE WORDS...
  local curve=$1
  shift
  start -np 4 --min-np 4 -H 127.0.0.1:2,127.0.0.2:2 --fixed-order "$@" -- "$trainer" --steps "$steps" \
    --epochs "$steps" --step-ms 3 --curve "$folder/$curve"
}

begin_again() { HVD_SAMPLE_LOG=$folder/samples begin lost --checkpoint-dir "$kept" --checkpoint-interval "$1"; }

digest() { sed -n 's/.*final params //p' "$1" | sort -u; }

peace() {
  begin peace
  finish 0
  expected=$(digest "$out")
  [ "$(wc -l <<<"$expected")" = 1 ] || die "in peace the parameters differ: $expected"
}

# Loses the pool so often; false when the training was over before.
lose() {
  local i complete
  new_job
  rm -rf samples
  mkdir samples
  kept=$folder/checkpoints-$steps
  [ "$place" != s3 ] || kept=s3://kept/of-$steps
  begin_again "${intervals[0]}"
  for ((i = 1; i <= times; i++)); do
    complete=$(grep -c 'checkpoint .* is complete' "$err")
    await_or_end "$err" 'checkpoint .* is complete' $((complete + 1 + RANDOM % 3)) || return
    timeout "0.0$((10 + RANDOM % 90))" tail -f /dev/null
    lose_all
    [ ! -s lost ] || return # it was over as it was killed
    begin_again "${intervals[i % ${#intervals[@]}]}"
    await_or_end "$err" 'the training goes on from' "$i" || return
  done
}

if [ "$place" = s3 ]; then
  s3_start
  s3_fault "kind=500,503,html,reset,late,late500,truncate,error200&percent=10&seed=$seed"
fi
peace
until lose; do
  say_line "$steps steps were over before $times losses"
  is_alive "$driver" && await_driver
  nothing_left
  rm -f lost
  steps=$((2 * steps))
  [ $steps -le $most ] || die "seed $seed: the training is over before the losses"
  new_job
  peace
done
finish 0

[ "$(digest "$out")" = "$expected" ] || die "seed $seed: the parameters are $(digest "$out"), and in peace $expected"
cmp -s peace lost || die "seed $seed: the losses differ from those in peace: $(diff peace lost | head -n 4)"
"$audit" samples >audited || die "seed $seed: $(cat audited)"
say_line "$times times all processes were killed, in $steps steps: the same loss in each step and the same parameters as in" \
  "peace; $(tail -n 1 audited)"
[ "$place" != s3 ] || say_line "the server of S3: $(s3_counts)"
