#!/usr/bin/env bash
# A timeline as its viewers see it: a worker is killed, a host joins; a driver that takes
# over goes on with the file, another job begins anew, and a file that cannot be written disturbs no worker.
# And a timeline that the program turns on and off: on all ranks, on one, twice, over a killed worker.
. "$(dirname "$0")/../shell/lib.sh"
# shellcheck source=tests/shell/train.sh
. "$(dirname "$0")/../shell/train.sh"
arrivals=$(realpath "$3")
test_begin "$@"
look=$(dirname "$script")/../shell/timeline.py

look() { python3 "$look" "$@" >looked 2>&1 || die "$(cat looked)"; }

list_hosts() { # HOST...
  printf '%s\n' "$@" >hosts.new
  mv hosts.new hosts
}

train() { # FILE WORDS...
  final=$folder/$job.final
  made=$folder/$job.made
  start -np 4 --min-np 2 --max-np 5 --hostfile hosts --timeline-filename "$@" -- "$trainer" --step-ms 2 --say "$say" \
    --made "$made" --final "$final" --steps "$steps" --slow-until "$go"
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
grep -q "exists and is no timeline" "$err" || die 'nobody says what thesis is'

# ---- turned on and off by the program ---------------------------------------------------------------

# train_own FILE WORDS...: the program writes the timeline itself
train_own() {
  final=$folder/$job.final
  made=$folder/$job.made
  start -np 4 --min-np 2 --hostfile hosts -- "$trainer" --step-ms 2 --say "$say" \
    --made "$made" --final "$final" --steps "$steps" --slow-until "$go" --own-timeline "$@"
}

list_hosts 127.0.0.1:2 127.0.0.2:2
steps=60
new_job
train_own own.json --timeline-from 10 --timeline-to 40
finish 0
all_right $steps
look own.json --has collectives:allreduce state:commit
[ "$(grep -c '"name":"allreduce"' own.json)" = 120 ] || die 'not 30 allreduces of each of 4 ranks'
[ "$(grep -c '"process_name"' own.json)" = 4 ] || die 'not 4 workers'

new_job
train_own own.json --timeline-from 10 --timeline-rank 2
finish 0
all_right $steps
look own.json --has rounds:'round 1' collectives:allreduce
[ "$(grep -c '"the job begins"' own.json)" = 1 ] || die 'the file of the earlier job was not replaced'
[ "$(grep -c '"process_name"' own.json)" = 1 ] || die 'not rank 2 alone'
grep -q '"rank 2, 127.0.0.2 slot 0 (incarnation ' own.json || die 'rank 2 is not shown'

new_job
train_own "$folder/none/t.json" --timeline-from 10 --timeline-to 40
finish 0
all_right $steps
grep -q 'sum_trainer: .*none/t.json: No such file' "$err" || die 'hvd_timeline_start does not say why'
grep -q 'sum_trainer: no timeline is being written' "$err" || die 'hvd_timeline_stop does not say why'

new_job
start -np 4 --hostfile hosts --timeline-filename t.json -- "$trainer" --steps 20 --say "$say" \
  --own-timeline own.json --timeline-from 5 --timeline-to 10
finish 0
grep -q 'sum_trainer: the timeline is written to /.*t.json already; call hvd_timeline_stop first' "$err" ||
  die 'a start beside --timeline-filename was not refused'
[ "$(grep -c '"name":"allreduce"' t.json)" = 40 ] || die 'the program did not stop the timeline at step 10'

steps=600
new_job
train_own own.json
await_round 4
await_step 40
kill_rank 1
await_round 4
finish 0
all_right $steps
look own.json --has collectives:allreduce changes:recovery rounds:"round $round"

# ---- who is late ------------------------------------------------------------------------------------

# 200 ms are more than a busy machine makes another rank wait, in most of the steps.
steps=40
new_job
start -np 4 --hostfile hosts --timeline-filename late.json -- "$trainer" --step-ms 2 --say "$say" \
  --steps $steps --late-ms 200 --late-rank 2
finish 0
look late.json --has phases:'wait for rank 2' phases:'wait for other hosts' phases:'between hosts'
[ "$(grep -c '"name":"wait for rank 2"' late.json)" -ge 24 ] || die 'rank 3 does not say that it waits for rank 2'
grep -q '"rank":3,"members":4,.*"last":2,"early_us":[0-9]\{5,\},' late.json || die 'rank 3 was not early'
grep -q '"rank":2,"members":4,.*"last":2,"early_us":0,' late.json || die 'rank 2 was not last'
"$arrivals" late.json >came 2>&1 || die "hvd-timeline: $(cat came)"
say_line "$(cat came)"
sed -n 3p came | grep -q 'rank 2, 127.0.0.2 slot 0' || die "rank 2 is not the last: $(cat came)"
[ "$(sed -n 3p came | awk '{print $1}')" -ge 24 ] || die "rank 2 is not nearly always the last: $(cat came)"
