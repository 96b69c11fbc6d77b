#!/usr/bin/env bash
# A driver dies while the directory of checkpoints is away, as on a disk that is not mounted. The next driver takes the
# job over without the directory, a worker is replaced, and checkpoints go on when the directory is back. Then all
# processes die while it is away: the next driver waits for the directory, and the training goes on from there.
#
#     checkpoints_away.sh ELASTIC TRAINER
. "$(dirname "$0")/../shell/lib.sh"
. "$(dirname "$0")/../shell/train.sh"
test_begin "$@"
steps=4000
kept=$folder/checkpoints

begin() {
  train_four --steps $steps
}
limits=(--checkpoint-dir "$kept" --checkpoint-interval 100ms)

begin
await "$err" 'checkpoint .* is complete' 2
await_round 4
kill_driver
mv "$kept" "$kept.away"
: >"$kept" # no directory can be opened or made here
complete=$(grep -c 'checkpoint .* is complete' "$err")
begin
await "$err" 'taken over although its checkpoints cannot be used now: .*Not a directory'
kill_rank 1
await_round 4
say_line "a worker was replaced while the directory was away"
await "$err" 'no checkpoint could be made'
rm "$kept"
mv "$kept.away" "$kept"
await "$err" 'the store of checkpoints answers'
await "$err" 'checkpoint .* is complete' $((complete + 1))
say_line "checkpoints go on"

lose_all
mv "$kept" "$kept.away"
begin
await "$err" 'the next round waits for the store of checkpoints'
[ ! -e "$kept" ] || die "the missing directory was made"
mv "$kept.away" "$kept"
await "$err" 'the training goes on from'
finish 0
all_right $steps

# A new job needs its directory at once.
new_job
: >"$folder/file"
limits=(--checkpoint-dir "$folder/file/checkpoints")
begin
await_driver
[ "$code" != 0 ] || die "a new job began without its directory"
grep -F 'Not a directory' "$err" >/dev/null || die "the error does not say why: $(cat "$err")"
