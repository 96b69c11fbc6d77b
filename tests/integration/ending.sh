#!/usr/bin/env bash
# How a job with checkpoints ends, and what it writes on the way: a checkpoint that an operator asks for; the last
# commit when a signal ends all processes at once; and commits while all hosts have notice to leave.
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

# ---- SIGTERM to all processes at once: the workers are dead before the driver can ask them

# The lowest of the newest steps of all ranks: all ranks have its commit, or the one before.
common_step() { awk '{ last[$2] = $3 } END { for (r in last) if (!n || last[r] < n) n = last[r]; print n }' "$made"; }

# goes_on STEP: the same command again goes on after that step, or after the one before it.
goes_on() {
  new_job
  begin
  await_step $(($1 + 2))
  first=$(awk '{ print $3 }' "$made" | sort -n | head -n 1)
  if [ "$first" -lt "$1" ] || [ "$first" -gt $(($1 + 2)) ]; then
    die "all ranks had made step $1, and the next job begins with $first"
  fi
}

new_job
begin
await_step 30
# shellcheck disable=SC2046
kill -TERM $(marked) 2>/dev/null
await_driver
nothing_left
[ "$code" = 143 ] || die "the driver ended with $code"
step=$(common_step)
goes_on "$step"

# ---- notices to all hosts at once, and then they are gone

step=$(common_step)
for host in 127.0.0.1 127.0.0.2; do
  find_agent $host
  kill -TERM "$agent"
done
await "$err" 'all hosts with workers are to leave'
await "$err" 'checkpoint .* is complete' 2 # the second one has what came after the notices
lose_all
last=$(awk '$3 > last { last = $3 } END { print last }' "$made")
new_job
begin
await_step $((last + 1))
first=$(awk '{ print $3 }' "$made" | sort -n | head -n 1)
[ "$first" -gt "$step" ] || die "the notices came after step $step, and the next job begins with $first"
ask stop >/dev/null
await_driver
