#!/usr/bin/env bash
# A job whose driver has died: status and hosts answer from its journal and change nothing; the job is resumed after
# that; stop takes the job over only to end it, also where its folder and secrets are gone, and names the hosts whose
# agents cannot be reached.
#
#     orphans.sh ELASTIC TRAINER
. "$(dirname "$0")/../shell/lib.sh"
test_begin "$@"

# shows REGEX VERB WORDS...: exit 0, and a line of what the verb prints matches.
shows() {
  local regex=$1
  shift
  ask "$@" >answer 2>&1 || die "$*: exit code $?: $(cat answer)"
  grep -qE -- "$regex" answer || die "$*: no '$regex' in: $(cat answer)"
}

# orphans WORDS...: a job of four workers loses its driver.
orphans() {
  start -np 4 --min-np 2 -H 127.0.0.1:2,127.0.0.2:2 "$@" "$trainer" --say "$say"
  await_round 4
  kill_driver
}

orphans
before=$(sha256sum "$state/job.db" "$state/job.db-wal" "$state/events.log" "$state/command")
shows "^job +$job: orphaned" status
shows '^round +1, size 4' status
shows '^driver +none lives .* of term 1, wrote its last line' status
shows "^to resume +hvd-elastic --resume $job --state-dir $state\$" status
shows '^no driver of this job lives' hosts
shows '^127\.0\.0\.2 +.* the agent of the host lives on this machine' hosts
shows '^127\.0\.0\.2:1 +4 +3 +member +-' hosts
for verb in status hosts; do
  ask $verb --json >answer || die "$verb --json: exit code $?"
  python3 -m json.tool answer >/dev/null || die "$verb --json: $(cat answer)"
done
[ "$(sha256sum "$state/job.db" "$state/job.db-wal" "$state/events.log" "$state/command")" = "$before" ] ||
  die 'a look has changed the state of the job'
[ "$(workers | wc -l)" = 4 ] || die 'a look has ended workers'

# the same job, resumed: no worker was restarted
start --resume "$job"
await "$err" 'says hello with 2 workers' 2
shows "^job +$job: running" status
kill_driver

# ended without a driver, by a user with another HOME: the agents are found by that of the job
mkdir elsewhere
HOME=$folder/elsewhere shows 'the job had no driver; it was taken over and ended' stop
if grep -q 'could not be reached' answer; then die "a host could not be reached: $(cat answer)"; fi
nothing_left
rmdir elsewhere || die 'the other HOME was used'
code=0
ask status >answer 2>&1 || code=$?
[ $code = 1 ] || die "status of an ended job: exit code $code: $(cat answer)"
grep -q "job $job has ended: stopped by hvd-elastic stop" answer || die "status of an ended job: $(cat answer)"
grep -qF 'ended, stopped by hvd-elastic stop' answer || die "status of an ended job: $(cat answer)"
shows_ended() {
  code=0
  ask "$@" >answer 2>&1 || code=$?
  [ $code = 1 ] || die "$1 of an ended job: exit code $code: $(cat answer)"
  grep -q "job $job has ended: stopped by hvd-elastic stop" answer || die "$1 of an ended job: $(cat answer)"
}
for verb in hosts checkpoint rekey 'drain 127.0.0.1' 'blacklist clear 127.0.0.1'; do
  # shellcheck disable=SC2086 # a verb and its words
  shows_ended $verb
done
shows_ended changes
grep -qE '^1 +(first|unknown) +0 -> 4 ' answer || die "changes of an ended job: $(cat answer)"
shows_ended blacklist
grep -q '^no failure is counted' answer || die "blacklist of an ended job: $(cat answer)"

# its folder is gone, its secret is not known here, and one agent is frozen: the rest ends, in a bounded time
new_job
mkdir elsewhere
cd elsewhere || exit 1
ORPHAN_SECRET=x orphans --lease 3s --env-secret ORPHAN_SECRET
cd .. && rmdir elsewhere
find_agent 127.0.0.2
frozen=$agent
kill -STOP "$frozen"
shows 'the job had no driver; it was taken over and ended' stop --no-wait
grep -qF 'hosts that could not be reached: 1 (127.0.0.2)' answer || die "stop does not name the host: $(cat answer)"
[ -z "$(workers HVD_HOST=127.0.0.1)" ] || die 'workers run on a host that was told'
kill -CONT "$frozen" # the process that the driver has left tells it that the job is over
nothing_left
say_line "a job without a driver is looked at, resumed and ended"
