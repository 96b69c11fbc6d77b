#!/usr/bin/env bash
# A program asks for a checkpoint (hvd_checkpoint) and waits for it, in turn on rank 0 and on all ranks. Then driver,
# agents and workers get SIGKILL at once, and the same command line is started again: the training goes on from that
# checkpoint or from a later one, and ends with the sums of a training in peace. No interval makes a checkpoint here.
#
#     asked_checkpoint.sh ELASTIC TRAINER TIMES [SEED]
. "$(dirname "$0")/../shell/lib.sh"
. "$(dirname "$0")/../shell/train.sh"
test_begin "$@"
times=$3
seed=${4:-$$}
RANDOM=$seed
say_line "seed $seed"
kept=$folder/checkpoints
asked=$folder/asked
steps=$((400 * (times + 1)))
: >"$asked"

begin() {
  final=$folder/$job.final
  made=$folder/$job.made
  start -np 4 --min-np 2 -H 127.0.0.1:2,127.0.0.2:2 --checkpoint-dir "$kept" --checkpoint-interval 1h -- \
    "$trainer" --steps $steps --step-ms 2 --say "$say" --made "$made" --final "$final" --slow-until "$go" \
    --ask-every 20 --asked "$asked"
}

# The step of the newest checkpoint whose wait has returned.
newest_asked() { awk '$1 > most { most = $1 } END { print most + 0 }' "$asked"; }

begin
for ((i = 1; i <= times; i++)); do
  await "$asked" "^$(($(newest_asked) + 20 * (1 + RANDOM % 3))) "
  timeout "0.0$((10 + RANDOM % 90))" tail -f /dev/null
  lose_all
  durable=$(newest_asked)
  lines=$(wc -l <"$made")
  begin
  await "$err" 'the training goes on from' "$i"
  first=$(timeout "$PATIENCE" tail -n +$((lines + 1)) -s $NAP -f "$made" | head -n 1 | cut -d ' ' -f 3)
  [ -n "$first" ] || die "kill $i: no step is made"
  [ "$first" -gt "$durable" ] ||
    die "kill $i: the checkpoint of step $durable was complete, and the training goes on with step $first"
  say_line "kill $i: step $durable was durable, the training goes on with step $first"
done
finish 0
all_right $steps

# Rank 0 asks alone after 20 steps, and all four ranks ask after 40.
[ "$(awk '$1 == 20' "$asked" | cut -d ' ' -f 2 | sort -u)" = 0 ] || die "another rank than 0 has asked after 20 steps"
[ "$(awk '$1 == 40' "$asked" | cut -d ' ' -f 2 | sort -u | wc -l)" = 4 ] || die "not all ranks have asked after 40 steps"

# Without a directory the wait says so.
new_job
start -np 2 -H 127.0.0.1:2 -- "$trainer" --steps 40 --say "$say" --ask-every 20 --asked "$folder/never"
await_driver
[ "$code" != 0 ] || die "a checkpoint without a directory is no error"
grep -F 'start it with --checkpoint-dir DIR' "$out" "$err" >/dev/null || die "the remedy is not named: $(cat "$out" "$err")"
