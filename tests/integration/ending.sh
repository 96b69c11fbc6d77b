#!/usr/bin/env bash
# How a job with checkpoints ends, and what it writes on the way: a checkpoint that an operator asks for.
#
#     ending.sh ELASTIC TRAINER
. "$(dirname "$0")/../shell/lib.sh"
. "$(dirname "$0")/../shell/train.sh"
test_begin "$@"
kept=$folder/checkpoints
steps=2000

# Four workers on two hosts, with a directory for checkpoints that no interval fills.
begin() {
  final=$folder/$job.final
  made=$folder/$job.made
  start -np 4 --min-np 2 -H 127.0.0.1:2,127.0.0.2:2 --checkpoint-dir "$kept" --checkpoint-interval 1h -- \
    "$trainer" --steps $steps --step-ms 2 --say "$say" --made "$made" --final "$final" --slow-until "$go"
}

# ---- the verb checkpoint

begin
await_step 10
answer=$(ask checkpoint) || die "no checkpoint could be asked for: $answer"
[[ $answer =~ ^commit-([0-9]+\.[0-9]+)\ is\ complete$ ]] || die "checkpoint says: $answer"
commit=${BASH_REMATCH[1]}
[ -s "$kept/commit-$commit/COMPLETE" ] || die "commit-$commit has no COMPLETE: $(find "$kept")"
answer=$(ask checkpoint --no-wait) || die "no checkpoint could be asked for without waiting: $answer"
[ "$answer" = 'a checkpoint is written when all workers train' ] || die "checkpoint --no-wait says: $answer"
await "$err" 'checkpoint .* is complete' 2
answer=$(ask checkpoint --json) || die "no checkpoint could be asked for as JSON: $answer"
[[ $answer =~ ^\{\"ok\":true,\"text\":\"commit-[0-9.]+\ is\ complete\"\}$ ]] || die "checkpoint --json says: $answer"

# The directory cannot be written: the operator is told why.
mv "$kept" "$kept.away"
: >"$kept"
ask checkpoint >"$folder/answer" 2>&1 && die "a checkpoint came into a directory that is none"
grep -F 'no checkpoint could be made' "$folder/answer" >/dev/null || die "checkpoint says: $(cat "$folder/answer")"
rm "$kept"
mv "$kept.away" "$kept"
ask stop >/dev/null
await_driver
nothing_left
rm -rf "$kept"
