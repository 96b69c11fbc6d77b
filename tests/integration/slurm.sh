#!/usr/bin/env bash
# The scripts of deploy/slurm on a real Slurm of three nodes: a training in one allocation loses a worker, a node that is
# drained, and a node that dies; an array of further jobs brings nodes, which get a notice and are preempted; the whole job is
# preempted, requeued, and goes on from its checkpoint; scancel ends it.
#
#     slurm.sh ELASTIC TRAINER
deploy=$(realpath "$(dirname "$0")/../../deploy/slurm")
. "$(dirname "$0")/../shell/lib.sh"
. "$(dirname "$0")/../shell/slurm.sh"
test_begin "$@"
mkdir bin run
ln -s "$elastic" bin/hvd-elastic
ln -s "$(realpath "$(dirname "$elastic")/../agent/hvd-agent")" bin/hvd-agent
made=$folder/$job.made
# what the jobs get: settings of the scripts, and options of hvd-elastic that suit a test
export PATH=$folder/bin:$PATH HVD_DEPLOY=$deploy RUN=$folder/run MAIN=127.0.0.1 PORT=$((slurm_port + 7))
export HVD_BEAT=200ms HVD_LEASE=5s HVD_BLACKLIST_COOLDOWN_RANGE='0 0' HVD_LISTEN=127.0.0.1

# submit NAME WORDS...: the number of the job is $jobs[NAME]; its output is in NAME.out and NAME.err
declare -A jobs=()
submit() {
  local name=$1
  shift
  jobs[$name]=$(slurm sbatch --parsable --job-name train --output "$folder/$name.out" --error "$folder/$name.err" "$@") ||
    die "sbatch $*: exit code $?"
}
state_of() { slurm_until "squeue -h -j ${jobs[$1]} -o %T" "^$2\$"; } # NAME STATE
happened() { say_line "$(date -u +%T) $*"; }                        # the transcript
slurm_begin

export TMPDIR=$folder/node XDG_STATE_HOME=$folder/agents
mkdir "$TMPDIR"
submit main --nodes 3 "$deploy/job.sbatch" "$trainer" --step-ms 5 --say "$say" --made "$made"
err=$folder/main.err out=$folder/main.out
await_round 3
happened "job ${jobs[main]} trains on $(slurm squeue -h -j "${jobs[main]}" -o %N)"
[ "$(stat -c %a run/token)" = 600 ] || die "the mode of the token is $(stat -c %a run/token)"

slurm srun --jobid "${jobs[main]}" --overlap --nodes 1 --ntasks 1 hvd-elastic status \
  --state-dir "$TMPDIR/hvd-${jobs[main]}-0" >said || die "status by srun: $(cat said)"
grep -q "^round .*3" said || die "status by srun says: $(cat said)"

kill -KILL "$(workers HVD_HOST=n2 | head -n 1)"
await_round 3
happened 'a worker of n2 was killed, and came back'

slurm scontrol update nodename=n2 state=drain reason=test || die 'scontrol: drain'
await "$err" 'hosts: -n2'
await_round 2
slurm scontrol update nodename=n2 state=resume || die 'scontrol: resume'
await_round 3
happened 'n2 was drained by scontrol, left, and came back when it was resumed'

slurm_node_dies n3
await_round 2
slurm_until "squeue -h -j ${jobs[main]} -o %T/%N" '^RUNNING/n\[1-2\]$'
happened 'n3 has died: the job goes on in what is left of its allocation, n[1-2]'

# ---- more nodes ------------------------------------------------------------------------------------

slurm_node n3
submit more --nodelist n3 "$deploy/agents.sbatch"
await_round 3
happened "n3 is up again, and job ${jobs[more]} has brought it to the training"
slurm scancel --batch --signal USR2 "${jobs[more]}" || die "scancel --signal"
await "$err" 'n3: the notice is honoured: lead (1m|[45][0-9])'
await_round 2
happened "a notice by scancel --batch --signal USR2:$(sed -n 's/.*n3: the notice is honoured:/ honoured,/p' "$err")"
slurm scancel "${jobs[more]}"
slurm_until "squeue -h -o job-%i -j ${jobs[main]},${jobs[more]}" "^job-${jobs[main]}\$"
revoked=$(grep -c 'is revoked' "$err")

submit more --nodelist n3 "$deploy/agents.sbatch"
await_round 3
submit high --partition high --nodelist n3 --exclusive --wrap 'exec tail -f /dev/null'
await_round 2
state_of high RUNNING
await "$folder/more.err" 'this host leaves the job'
[ "$(grep -c 'is revoked' "$err")" = "$revoked" ] || die "a round was revoked: $(grep 'is revoked' "$err")"
happened "job ${jobs[more]} was preempted by job ${jobs[high]}: n3 has left in order, no round was revoked"
slurm scancel "${jobs[high]}"
await_round 3
happened "job ${jobs[more]} was requeued, and has brought n3 back"
slurm scancel "${jobs[more]}"
await_round 2

# ---- the whole job ---------------------------------------------------------------------------------

submit high --partition high --nodes 2 --nodelist n1,n2 --exclusive --wrap 'exec tail -f /dev/null'
state_of high RUNNING
state_of main PENDING
[ "$(grep -c 'is revoked' "$err")" = "$revoked" ] || die "a round was revoked: $(grep 'is revoked' "$err")"
steps=$(awk '$3 > last { last = $3 } END { print last }' "$made")
lines=$(wc -l <"$made")
happened "the whole job was preempted after step $steps, and waits to be started again"
stop_hearing
: >"$say"
round=0
slurm scancel "${jobs[high]}"
await "$err" 'the training goes on from .*/checkpoints/'
await_round 3
first=$(timeout "$PATIENCE" tail -n "+$((lines + 1))" -s "$NAP" -f "$made" | awk '{ print $3; exit }') || true
[ -n "$first" ] || die 'no step was made after the preemption'
happened "it was requeued, and went on from its last checkpoint with step $first"
[ "$first" -gt 1 ] || die 'the training has begun anew'
[ "$first" -le $((steps + 1)) ] || die "steps $((steps + 1)) to $((first - 1)) are lost"

slurm scancel "${jobs[main]}"
slurm_none
checkpoint=$(grep -E 'checkpoint [0-9.]+ is complete' "$err" | tail -n 1)
happened "scancel has ended the job; its last checkpoint: ${checkpoint#*job: }"

# ---- srun alone --------------------------------------------------------------------------------------

# deploy/mpi/job.sh: the ranks that srun starts are those of the job, also if nodes have different numbers of tasks.
new_job
# shellcheck disable=SC2016 # the worker's shell is to see it
RUN=$folder/srun slurm srun --nodes 3 --ntasks 5 --kill-on-bad-exit=1 "$deploy/../mpi/job.sh" \
  sh -c 'echo "$HVD_HOST:$HVD_LOCAL_RANK is $HVD_RANK of $HVD_SIZE"' >"$out" 2>"$err" || die "srun job.sh: exit code $?"
ranks=$(sed 's/^[^]]*] //' "$out" | sort | paste -sd ,)
[ "$ranks" = 'n1:0 is 0 of 5,n1:1 is 1 of 5,n2:0 is 2 of 5,n2:1 is 3 of 5,n3:0 is 4 of 5' ] || die "srun job.sh: the ranks are $ranks"
happened "srun has started five ranks on three nodes as one job: $ranks"
slurm_none

slurm_end
nothing_left
happened 'Slurm was ended, and nothing is left'
