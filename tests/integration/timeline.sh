#!/usr/bin/env bash
# What happened, as the viewers of a timeline see it: a worker is killed, a host joins; a driver that takes
# over goes on with the file, another job begins anew, and a file that cannot be written disturbs nobody.
. "$(dirname "$0")/../body/lib.sh"
# shellcheck source=tests/body/train.sh
. "$(dirname "$0")/../body/train.sh"
body_begin "$@"
look=$(dirname "$script")/../body/timeline.py

look() { python3 "$look" "$@" >looked 2>&1 || die "$(cat looked)"; }

list_hosts() { # HOST...
  printf '%s\n' "$@" >hosts.new
  mv hosts.new hosts
}

train() { # FILE WORDS...
  final=$folder/$job.final
  made=$folder/$job.made
  start -np 4 --min-np 2 --hostfile hosts --timeline-filename "$@" -- "$trainer" --step-ms 2 --say "$say" \
    --made "$made" --final "$final" --steps "$steps"
}

# ---- a kill, a driver's death, and a join -----------------------------------------------------------

steps=600
list_hosts 127.0.0.1:2 127.0.0.2:2
train t.json
await_round 4
await_step 40
kill_rank 1
await_round 4
await_step 80
kill_driver
train t.json
list_hosts 127.0.0.1:2 127.0.0.2:2 127.0.0.3:1
await_round 5
finish 0
all_right $steps
look t.json --has rounds:'round 1' rounds:"round $round" changes:start changes:join changes:recovery \
  changes:switch changes:'first step' state:'commit 1.' state:fetch collectives:allreduce
say_line "a job with a kill and a join: $(cat looked)"
[ "$(grep -c '"the job begins"' t.json)" = 1 ] || die 'the file was begun more than once'
grep -q '"rank 0, 127.0.0.1 slot 0 (incarnation ' t.json || die 'no process has its name'
grep -q '"name":"round 1",.*"ended":"HVD_E_REVOKED"' t.json || die 'round 1 was not revoked'
grep -q '"name":"round '"$round"'",.*"ended":"done"' t.json || die "round $round was not done"
first=$job

# ---- another job ------------------------------------------------------------------------------------

new_job
steps=50
train t.json
finish 0
all_right $steps
look t.json --has rounds:'round 1' changes:start state:commit collectives:allreduce
grep -qF "\"$job\"" t.json || die 'the file is not of the second job'
! grep -qF "\"$first\"" t.json || die 'the file is of the first job still'
[ -z "$(find . -maxdepth 1 -name 't.json.*')" ] || die "left: $(echo t.json.*)"

# ---- nowhere to write -------------------------------------------------------------------------------

new_job
train "$folder/none/t.json"
finish 0
all_right $steps
grep -q "none/t.json: No such file" "$err" || die 'nobody says that there is no timeline'
new_job
echo 'my thesis' >thesis
train thesis
finish 0
all_right $steps
[ "$(cat thesis)" = 'my thesis' ] || die 'a file that is no timeline was overwritten'
grep -q "is there and is no timeline" "$err" || die 'nobody says what thesis is'
