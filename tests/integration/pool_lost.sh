#!/usr/bin/env bash
# The whole pool is lost at once: driver, agents and workers get SIGKILL at random moments, and the same command
# line is started again. The training goes on from the newest complete checkpoint, and ends with the sums of a
# training in peace. In the end a new job begins with the last checkpoint, with another number of workers. With "s3" the
# checkpoints are in a bucket, whose server fails at random; with "command" in the store of a program.
# TIMES 100 is the campaign: the figures are printed.
#
#     pool_lost.sh ELASTIC TRAINER TIMES [SEED [s3]]
. "$(dirname "$0")/../shell/lib.sh"
. "$(dirname "$0")/../shell/train.sh"
place=${5:-directory}
[ "$place" != s3 ] || . "$(dirname "$0")/../shell/s3.sh"
test_begin "$@"
times=$3
seed=${4:-$$}
RANDOM=$seed
say_line "seed $seed"
kept=$folder/checkpoints
keep=--checkpoint-dir
if [ "$place" = s3 ]; then
  s3_start
  s3_fault "kind=500,503,html,reset,late,late500,truncate,error200&percent=10&seed=$seed"
  kept=s3://kept/some/prefix
elif [ "$place" = command ]; then
  mkdir "$folder/objects"
  kept="$(realpath "$(dirname "$script")/../shell/store.sh") $folder/objects"
  keep=--checkpoint-command
fi
at=$kept
[ "$place" != command ] || at=command://$kept
steps=$((400 * (times + 1)))

begin() {
  final=$folder/$job.final
  made=$folder/$job.made
  start -np 4 --min-np 2 -H 127.0.0.1:2,127.0.0.2:2 $keep "$kept" --checkpoint-interval "$1" -- \
    "$trainer" --steps $steps --step-ms 2 --say "$say" --made "$made" --final "$final" --slow-until "$go"
}

# The newest complete checkpoint, as ROUND.INDEX.
newest_complete() {
  if [ -d "$kept" ]; then
    find "$kept" -name COMPLETE -printf '%h\n' | sed 's/.*commit-//' | sort -t. -k1,1n -k2,2n | tail -n 1
  else
    "$elastic" checkpoints "$at" | sed -n 's/ .* complete$//p' | head -n 1
  fi
}

# middle NAME UNIT: the median and the most of the numbers in the file.
middle() {
  sort -n "$1" | awk -v name="$1" -v unit="$2" '{ number[NR] = $1 }
    END { printf "%s: median %d%s, most %d%s\n", name, number[int((NR + 1) / 2)], unit, number[NR], unit }'
}

intervals=(100ms 20c 1c 250ms)
begin "${intervals[0]}"
for ((i = 1; i <= times; i++)); do
  complete=$(grep -c 'checkpoint .* is complete' "$err")
  await "$err" 'checkpoint .* is complete' $((complete + 1 + RANDOM % 3))
  timeout "0.0$((10 + RANDOM % 90))" tail -f /dev/null
  lose_all
  before=$(newest_complete)
  [ -n "$before" ] || die "kill $i: no checkpoint is complete"
  last=$(awk '$3 > last { last = $3 } END { print last + 0 }' "$made")
  lines=$(wc -l <"$made")
  begin "${intervals[i % ${#intervals[@]}]}"
  # The first step after the loss.
  first=$(timeout "$PATIENCE" tail -n +$((lines + 1)) -s $NAP -f "$made" | head -n 1 | cut -d ' ' -f 3)
  echo $(((${EPOCHREALTIME/[.,]/} - killed) / 1000)) >>stood
  [ -n "$first" ] || die "kill $i: no step is made"
  echo $((last - first + 1)) >>lost
  await "$err" 'the training goes on from' "$i"
  resumed=$(sed -nE 's/.*newer commit than checkpoint ([0-9.]+):.*/\1/p' "$err" | tail -n 1)
  # A server of S3 may complete an upload after its client has died.
  [ -n "${5:-}" ] && before=$(printf '%s\n' "$before" "$resumed" | sort -t. -k1,1n -k2,2n | tail -n 1)
  [ "$before" = "$resumed" ] ||
    die "kill $i: checkpoint $before was complete, and the job goes on from $resumed"
done
say_line "$times of $times went on from the newest complete checkpoint"
middle stood ' ms'
middle lost ' steps'
await "$err" 'checkpoint .* is complete' $((times + 1))
finish 0
all_right $steps
left=$("$elastic" checkpoints "$at")
[ "$(grep -c 'complete$' <<<"$left")" -le 3 ] || die "more than 3 checkpoints are kept: $left"
say_line "$times times all processes were killed; the last checkpoint is $(newest_complete)"

# A new job, with six workers, from the last checkpoint of the first one.
first=$(awk '{ print $3 }' "$made" | sort -n | head -n 1)
[ "$first" = 1 ] || die "the first job began with step $first"
new_job
final=$folder/$job.final
made=$folder/$job.made
start -np 6 -H 127.0.0.1:3,127.0.0.2:3 --from-checkpoint "$at" -- \
  "$trainer" --steps $((steps + 10)) --step-ms 2 --say "$say" --made "$made" --final "$final"
finish 0
all_right $((steps + 10))
first=$(awk '{ print $3 }' "$made" | sort -n | head -n 1)
[ "$first" -gt 1 ] || die "the second job began anew"
say_line "a job of six workers began with step $first"
[ "$place" != s3 ] || say_line "the server of S3: $(s3_counts)"
[ "$place" = directory ] || exit 0

# Two jobs and one directory: the second one is refused, with the name of the first, which has steps left to make.
steps=$((10 * steps))
new_job
begin 100ms
await "$err" 'checkpoint .* is complete'
one=$driver one_job=$job one_state=$state
new_job
begin 100ms
await_driver
[ "$code" != 0 ] || die "a second job used the directory"
grep -F "$one_job" "$err" >/dev/null || die "the refusal does not name $one_job: $(cat "$err")"
driver=$one job=$one_job state=$one_state err=$folder/$job.err go=$folder/$job.go
ask stop >/dev/null
await_driver
