#!/usr/bin/env bash
# Failures without a newer commit in between end the job after the stated number, in words; a worker that is
# killed again and again with commits in between never does. Plain commands that always fail end it too. The driver
# may die meanwhile.
#
#     no_progress.sh ELASTIC TRAINER [KILLS]
. "$(dirname "$0")/../shell/lib.sh"
test_begin "$@"
kills=${3:-6}

# dies WORDS...: rank 1 of two dies at step 5, each time
dies() {
  start -np 2 -H 127.0.0.1:2 "$@" -- "$trainer" --step-ms 1 --say "$say" --where step --wrong fail --at 5 --rank 1
}

launched() { grep -c "127.0.0.1:1#[0-9]* is launched" "$err"; }

dies
finish 1
tail -n 1 "$err" | grep -qF 'failed 4 times without a newer commit in between, more than --progress-restarts 3 allows' ||
  die "not said: $(tail -n 1 "$err")"
[ "$(launched)" -ge 4 ] || die "rank 1 was started $(launched) times"

new_job
dies --progress-restarts 1
finish 1
tail -n 1 "$err" | grep -qF '127.0.0.1:1 has failed 2 times' || die "not said: $(tail -n 1 "$err")"

new_job
dies --progress-restarts unlimited --progress-restarts-job 5
finish 1
tail -n 1 "$err" | grep -qF '6 rounds in a row ended by a failure without a newer commit' ||
  die "not said: $(tail -n 1 "$err")"

# The count outlives the driver.
new_job
dies --progress-restarts 2 --blacklist-cooldown-range 1 1
await "$err" 'the last 2 rounds ended by failures'
kill_driver
dies --progress-restarts 2 --blacklist-cooldown-range 1 1
finish 1
tail -n 1 "$err" | grep -qF '127.0.0.1:1 has failed 3 times' || die "not said: $(tail -n 1 "$err")"

# Commits in between: no failure counts with the one before.
new_job
made=$folder/$job.made
start -np 2 -H 127.0.0.1:2 --progress-restarts 1 --progress-restarts-job 1 -- "$trainer" --step-ms 1 --say "$say" \
  --made "$made"
for ((i = 1; i <= kills; i++)); do
  await_round 2
  await "$made" "^$round 0 " 20
  kill -KILL "$(workers HVD_SLOT=1)"
done
await_round 2
ask stop || die "stop: exit code $?"
finish 143
if grep -q 'rounds ended by failures' "$err"; then die "$(grep 'rounds ended by failures' "$err")"; fi
say_line "killed $kills times with commits in between: the job went on"

# Plain commands: all fail; and the same where each failure sets the host aside.
new_job
start -np 2 -H 127.0.0.1:2 -- false
finish 1
tail -n 1 "$err" | grep -qE '127.0.0.1:[01]#[0-9]+: exit code 1' || die "not said: $(tail -n 1 "$err")"

new_job
start -np 2 -H 127.0.0.1:2 --blacklist-scope host --progress-restarts 2 --blacklist-cooldown-range 1 1 -- false
finish 1
tail -n 1 "$err" | grep -qE '127.0.0.1:[01]#[0-9]+: exit code 1' || die "not said: $(tail -n 1 "$err")"

# One command of two fails. The driver ends the other with the host, so it is the first of no slot; under two drivers.
# shellcheck disable=SC2016 # the worker's shell is to see it
one_fails() {
  start -np 2 -H 127.0.0.1:2 --blacklist-scope host --progress-restarts 2 --blacklist-cooldown-range 1 1 --lease 4s \
    -- sh -c '[ "$HVD_RANK" = 0 ] || exec sleep 1000; exit 7'
}
new_job
one_fails
await "$err" 'the last 2 starts ended by failures without a run of 10m or a success in between'
kill_driver
one_fails
finish 1
tail -n 1 "$err" | grep -qF '127.0.0.1:0 has failed 3 times without a run of 10m or a success in between, more than --progress-restarts 2 allows: the command makes no progress' ||
  die "not said: $(tail -n 1 "$err")"
