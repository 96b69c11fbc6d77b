#!/usr/bin/env bash
# job.db cannot be written for three times --stall-shutdown, as another process has locked it; two workers die meanwhile.
# The driver's orders to the other workers wait. No worker is late for them: the same processes train on, and only the slots
# of the two dead ones are charged.
#
#     store_waits.sh ELASTIC TRAINER
. "$(dirname "$0")/../shell/lib.sh"
test_begin "$@"

# has_run SECONDS: the driver says that it runs for so long, or for longer. In $runs: for how long.
has_run() {
  ask status --json >answer || die "status: $(cat answer)"
  runs=$(grep -oE '"for_s":[0-9]+' answer | head -n 1 | cut -d : -f 2)
  [ "$runs" -ge "$1" ]
}

start -np 4 --min-np 2 -H 127.0.0.1:2,127.0.0.2:2 --beat 200ms --stall-shutdown 3s --prepare-timeout 3s \
  "$trainer" --step-ms 2 --say "$say"
await_round 4
mapfile -t stay < <(workers HVD_HOST=127.0.0.1)
mapfile -t die_here < <(workers HVD_HOST=127.0.0.2)
[ "${#stay[@]}:${#die_here[@]}" = 2:2 ] || die "${#stay[@]} and ${#die_here[@]} workers, not 2 and 2"

coproc LOCK { sqlite3 "$state/job.db"; }
# shellcheck disable=SC2153 # bash sets LOCK_PID
helpers+=("$LOCK_PID")
echo "BEGIN IMMEDIATE; SELECT 'locked';" >&"${LOCK[1]}"
read -r -t "$PATIENCE" locked <&"${LOCK[0]}" || die 'job.db cannot be locked'
[ "$locked" = locked ] || die "sqlite3: $locked"

kill -KILL "${die_here[0]}"
await "$err" 'round 2 \(recovery\): size 3' # its record waits, and the round with it
kill -KILL "${die_here[1]}"
await "$err" 'round 2 is revoked'           # and this waits for the round
await "$err" 'no worker is judged for what it was not told'
has_run 0 || die "for how long the driver runs is not in $(cat answer)"
await_true 'nine more seconds of the driver' has_run $((runs + 9))
echo 'ROLLBACK;' >&"${LOCK[1]}"
await "$err" 'the journal is written again after'

await_round 4
mapfile -t now < <(workers HVD_HOST=127.0.0.1)
[ "${now[*]}" = "${stay[*]}" ] || die "on 127.0.0.1 run ${now[*]}, and were to stay: ${stay[*]}"
[ "$(grep -c 'blacklist: .* failed' "$err")" = 2 ] || die "charged: $(grep blacklist: "$err")"
[ "$(grep -c 'killed by signal 9' "$err")" -ge 2 ] || die 'the two deaths are not in the log'
ask stop || die "stop: exit code $?"
finish 143
say_line "job.db could not be written for 9 s: two deaths were repaired after it, and no other worker was ended"
