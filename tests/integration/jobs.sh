#!/usr/bin/env bash
# The verbs that need no driver: jobs lists living, orphaned and ended jobs with their exit codes; prune removes ended
# ones, and nothing else, also after a prune that was killed in the middle.
#
#     jobs.sh ELASTIC TRAINER
. "$(dirname "$0")/../shell/lib.sh"
test_begin "$@"
root=$HOME/.local/state/hvd-elastic

# begin NAME WORDS...: a job in the user's own state directory, in the background; its driver is in $driver.
begin() {
  local name=$1
  shift
  BODY_TEST=$folder "$elastic" --job "$name" --kill-grace 2s --blacklist-cooldown-range 0 0 "$@" >>"$out" 2>>"$err" </dev/null &
  driver=$!
}

# runs NAME CODE COMMAND...: a job that ends with this code.
runs() {
  local name=$1 want=$2
  shift 2
  begin "$name" -np 1 "$@"
  await_driver
  [ "$code" = "$want" ] || die "job $name: exit code $code, not $want"
}

# says REGEX VERB WORDS...: exit 0, and a line of what the verb prints matches.
says() {
  local regex=$1
  shift
  BODY_TEST=$folder timeout "$PATIENCE" "$elastic" "$@" >answer 2>&1 || die "$*: exit code $?: $(cat answer)"
  grep -qE -- "$regex" answer || die "$*: no '$regex' in: $(cat answer)"
}

# lists NAME STATE CODE, or lists NAME: "jobs" has no such job.
lists() {
  "$elastic" jobs --json >answer 2>answer.err || die "jobs --json: exit code $?: $(cat answer.err)"
  python3 - "$@" <<'EOF' || die "jobs: $*: $(cat answer)"
import json, sys
name, *want = sys.argv[1:]
found = [[job["state"], str(job["code"])] for job in json.load(open("answer"))["jobs"] if job["job"] == name]
sys.exit(found != ([want] if want else []))
EOF
}

says '^JOB +STATE +CODE' jobs
says ': 0$' prune
runs good 0 true
runs bad 1 false
begin living -np 1 sh -c "touch $folder/living; exec sleep 1000"
living=$driver
begin orphan -np 1 sh -c "touch $folder/orphan; exec sleep 1000"
orphan=$driver
both_work() {
  is_alive "$living" || die 'the driver of living has ended'
  is_alive "$orphan" || die 'the driver of orphan has ended'
  [ -e "$folder/living" ] && [ -e "$folder/orphan" ]
}
await_true 'the files of two workers' both_work
kill -KILL $orphan
driver=$orphan
await_driver

lists good ended 0
lists bad ended 1
lists living living None
lists orphan orphaned None
lists nothing
says "^orphan +orphaned +- .*$root/orphan\$" jobs
says "^bad +ended +1 .*$root/bad\$" jobs

# a verb for the only driver that lives names the job that has none
says '^job +living: ' status
grep -qF 'job orphan has no driver; name it: hvd-elastic status orphan' answer || die "the orphan is not named: $(cat answer)"
says '^job +orphan: orphaned' status orphan

# what is young enough, or among the newest, stays
says ': 0$' prune
says ': 0$' prune --retain 1h
says ': 1$' prune --retain 1
[ "$(find "$root" -maxdepth 1 -mindepth 1 | wc -l)" = 3 ] || die "prune --retain 1 leaves: $(ls "$root")"
lists good
lists bad ended 1

# a prune that is killed at some moment leaves half of a job, or none, and the next one clears it; what lives stays
for i in 1 2 3 4 5 6; do
  runs "old$i" 0 true
  for k in $(seq 200); do : >"$root/old$i/agents/$k"; done
done
for ms in $(seq 20 25 995); do
  code=0
  { BODY_TEST=$folder timeout -s KILL "0.$(printf '%03d' "$ms")" "$elastic" prune --retain 0; } >answer 2>&1 || code=$?
  for i in 1 2 3 4 5 6; do
    if [ -e "$root/old$i" ]; then lists "old$i" ended 0; else lists "old$i"; fi
  done
  [ $code != 0 ] || break
  [ $code = 137 ] || die "prune: exit code $code: $(cat answer)"
done
says '^ended jobs' prune --retain 0
[ "$(find "$root" -maxdepth 1 -mindepth 1 -printf '%f\n' | sort | tr '\n' ' ')" = 'living orphan ' ] ||
  die "prune --retain 0 leaves: $(ls -A "$root")"
mkdir "$root/.pruned-old7-1" # this one was killed after the rename
echo x >"$root/.pruned-old7-1/job.db"
says ': 0$' prune
[ ! -e "$root/.pruned-old7-1" ] || die 'half of a job is left'

# a file that cannot be read says nothing of its job, so it stays
runs broken 0 true
echo rubbish >"$root/broken/job.db"
lists broken damaged None
says ': 0$' prune --retain 0
[ -e "$root/broken/job.db" ] || die 'a job that cannot be read was removed'
rm -r "$root/broken"

# the orphan has lost nothing: it is taken over, and ended
BODY_TEST=$folder "$elastic" --resume orphan >>"$out" 2>>"$err" </dev/null &
is_taken_over() { says 'orphan' jobs && grep -q 'orphan *living' answer; }
await_true 'a driver of orphan' is_taken_over
for name in orphan living; do says 'is being stopped' stop $name; done
driver=$living
await_driver
lists living ended 143
says ': 2$' prune --retain 0
nothing_left
say_line "jobs and prune: as they should be"
