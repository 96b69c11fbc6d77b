#!/usr/bin/env bash
# The verb "autopsy" tells what workers were doing when they died: killed by SIGSEGV in a collective, an exit code,
# hvd_fail, a hang that became a stall, a death while no driver was there, a killed agent; of a job that lives, has no driver,
# and has ended; another job of the same name begins without them.
#
#     autopsy.sh ELASTIC TRAINER
. "$(dirname "$0")/../shell/lib.sh"
test_begin "$@"
# A worker that is built with ASan is to die of the signal, as other programs do, and leave no core file in this folder.
export ASAN_OPTIONS=handle_segv=0
ulimit -c 0

# tells PYTHON: until this holds of `dead` and `stalled`, the autopsies in the JSON by incarnation; that JSON is in the file
# answer.
tells() {
  local until=$((SECONDS + PATIENCE))
  until ask autopsy --json >answer && python3 -c '
import json, sys
seen = json.load(open("answer"))["autopsies"]
stalled = {each["incarnation"]: each for each in seen if each["ended"] == "alive in a stall"}
dead = {each["incarnation"]: each for each in seen if each["ended"] != "alive in a stall"}
sys.exit(not eval(sys.argv[1]))' "$1" 2>wrong; do
    [ $SECONDS -lt $until ] || die "'$1' does not hold of $(cat answer) $(cat wrong)"
    timeout $NAP tail -f /dev/null
  done
}
# one_of RANK: its incarnation in the newest round, in $one, and its process, in $victim.
one_of() {
  one=$(awk -v round="$round" -v rank="$1" '$2 == round && $3 == rank { print $1 }' "$say")
  victim=$(workers "HVD_INCARNATION=$one")
  [ -n "$victim" ] || die "there is no rank $1 in round $round: $(cat "$say")"
}
# stands_still: no commit was made for a second.
stands_still() {
  ask status --json >answer
  python3 -c 'import json, sys; sys.exit(json.load(open("answer"))["newest_age_s"] <= 1)'
}
# late: from now on rank 0 does not come to the collectives, so rank 1 soon waits in one.
late() { : >"$folder/late"; }

words=(-np 2 --min-np 1 -H '127.0.0.1:1,127.0.0.2:1' --beat 100ms --lease 1h "$trainer" "$say" "$folder")
start "${words[@]}"
await_round 2
[ "$(ask autopsy)" = 'No worker of this job has died.' ] || die "there is an autopsy: $(ask autopsy)"
ask autopsy 127.0.0.9:0 2>wrong && die 'a worker that never was has an autopsy'
grep -q 'no death of 127.0.0.9:0 is known' wrong || die "$(cat wrong)"

# SIGSEGV in a collective. Rank 0 is late, so rank 1 waits in its allreduce as soon as it has done its own part of the step.
late
one_of 1
first=$one
await_true 'rank 1 waits' stands_still
kill -SEGV "$victim"
tells "dead[$first]['signal'] == 11 and dead[$first]['rank'] == 1 and dead[$first]['size'] == 2"
tells "dead[$first]['doing'].startswith('allreduce 1.') and dead[$first]['pid'] == $victim"
tells "dead[$first]['activities'][-1]['took_s'] is None and dead[$first]['activities'][-1]['bytes'] == 4"
tells "any(each['name'] == 'commit' and each['took_s'] is not None for each in dead[$first]['activities'])"
rm "$folder/late"
ask autopsy >answer
for line in "^127\.0\.0\.[12]:0#$first, rank 1 of 2: killed by signal 11 \(SIGSEGV\)$" '^  doing      allreduce 1\.[0-9]+, 4 bytes, for ' \
  '^ .* before  commit 1\.[0-9]+, [0-9]+ bytes, took ' '^  stderr     nothing was printed$' '^  backtrace  '; do
  grep -qE "$line" answer || die "no '$line' in: $(cat answer)"
done
await "$err" "what 127\.0\.0\.[12]:0#$first did last.* hvd-elastic autopsy --state-dir"
await_round 2

# An exit code; what the worker has printed cannot harm the terminal.
one_of 1
: >"$folder/exit"
tells "dead[$one]['exit_code'] == 7 and dead[$one]['stdout'].endswith('was the last one\n') and 'data is gone' in dead[$one]['stderr']"
tells "dead[$one]['doing'].startswith('code of the program, in round $round, in step ')"
# The line for one of the deaths ends with the command that shows it.
ask autopsy >answer
grep -qxF "More of one of them: hvd-elastic autopsy --state-dir $state HOST:SLOT#NUMBER" answer || die "$(cat answer)"
ask autopsy "#$one" >answer
grep -qE '^  stderr     \| Traceback:$' answer || die "no traceback: $(cat answer)"
grep -qP '\x1b|\x07' answer && die 'a sequence for the terminal is passed on'
await_round 2

# The program says why it gives up.
one_of 1
: >"$folder/fail"
tells "dead[$one]['exit_code'] > 0 and 'the loss is not a number' in dead[$one]['reason']"
await_round 2
[ "$(grep -c 'hvd-elastic autopsy' "$err")" = 1 ] || die 'the command is named more than once'

# A death without a driver; the next one is told by the agent.
late
one_of 1
kill_driver
kill -SEGV "$victim"
ask autopsy "#$first" >answer || die 'no autopsy without a driver'
rm "$folder/late"
start "${words[@]}"
tells "dead[$one]['signal'] == 11 and $first in dead"
await_round 2

# A killed agent: nothing is known of its worker, and the job goes on.
find_agent 127.0.0.2
gone=$(workers HVD_HOST=127.0.0.2)
gone=$(variable "$gone" HVD_INCARNATION)
kill -KILL "$agent"
await_round 2
tells "$gone not in dead and $first in dead"
: >"$folder/stop"
finish 0
ask autopsy >answer || die 'no autopsy of a job that has ended'
grep -qE "#$first, rank 1 of 2: killed by signal 11 \(SIGSEGV\); allreduce 1\." answer || die "$(cat answer)"
say_line 'deaths of a job with and without a driver, and after its end'

# Another job of that name; a hang that becomes a stall.
rm "$folder/stop"
round=0
stop_hearing
: >"$say"
start --stall-warning 500ms --stall-shutdown 2s "${words[@]}"
await_round 2
[ "$(ask autopsy)" = 'No worker of this job has died.' ] || die "the autopsies of the former job stay: $(ask autopsy)"
one_of 1
: >"$folder/hang"
tells "dead[$one]['signal'] == 9 and dead[$one]['reason']"
tells "stalled[$one]['doing'].startswith('code of the program, in round $round, in step ') and stalled[$one]['ran_s'] > 0"
tells "dead[$one]['doing'].startswith('code of the program, in round $round, in step ')"
await "$err" 'what 127\.0\.0\.[12]:0#[0-9]+ does in the stall is shown by: hvd-elastic autopsy'
await_round 2

# A disk that takes nothing: one warning, and the job goes on.
one_of 1
rm -r "$state/autopsies"
: >"$state/autopsies"
: >"$folder/exit"
await_round 2
one_of 1
: >"$folder/exit"
await_round 2
await "$err" 'what dead workers were doing cannot be kept, and the job goes on: .*/autopsies'
[ "$(grep -c 'cannot be kept' "$err")" = 1 ] || die 'a full disk is warned of twice'
rm "$state/autopsies"
: >"$folder/stop"
finish 0
say_line 'a stall, another job of the name, and a disk that takes nothing'

# A worker that is killed because its time to leave is over: its autopsy is kept, and no line of the log asks to look at it.
rm "$folder/stop"
round=0
stop_hearing
: >"$say"
start "${words[@]}"
await_round 2
named=$(grep -c 'hvd-elastic autopsy' "$err")
one_of 1
: >"$folder/hang"
await_true 'rank 1 hangs' stands_still
ask drain "$(variable "$victim" HVD_HOST)" --deadline 100ms >answer || die "drain: $(cat answer)"
tells "dead[$one]['signal'] == 9 and 'time to leave' in dead[$one]['reason']"
await "$err" "what 127\.0\.0\.[12]:0#$one did last is kept in "
[ "$(grep -c 'hvd-elastic autopsy' "$err")" = "$named" ] || die 'a drained worker is to be looked at'
: >"$folder/stop"
finish 0
say_line 'the end of a drained worker'
