#!/usr/bin/env bash
# deploy/mpi/job.sh under a real mpirun, on two hosts, which are processes of this machine with host names of their own: ranks
# are those of mpirun, also for a program that calls hvd_init; a worker is killed and comes back; mpirun ends with the code of the
# job, and nothing is left. Processes that cannot meet, and a folder of another start, are refused.
#
#     mpi_job.sh ELASTIC TRAINER
job_sh=$(realpath "$(dirname "$0")/../../deploy/mpi/job.sh")
. "$(dirname "$0")/../shell/lib.sh"
. "$(dirname "$0")/../shell/mpi.sh"
test_begin "$@"
mpi_begin
mkdir bin
ln -s "$elastic" bin/hvd-elastic
ln -s "$(realpath "$(dirname "$elastic")/../agent/hvd-agent")" bin/hvd-agent
export PATH=$folder/bin:$PATH MAIN=127.0.0.1 PORT=$((20000 + $$ % 10000)) XDG_STATE_HOME=$folder/agents
export HVD_LISTEN=127.0.0.1 HVD_BEAT=200ms HVD_LEASE=5s HVD_GATHER=1s HVD_KILL_GRACE=2s HVD_BLACKLIST_COOLDOWN_RANGE='0 0'

# by_mpirun WORDS...: in the background, three processes on node1 and one on node2.
by_mpirun() {
  BODY_TEST=$folder mpirun "${mpi_hosts[@]}" \
    --host node1:3,node2:1 -np 4 "$@" >>"$out" 2>>"$err" </dev/null &
  driver=$!
}

# gone: the folder of the start is removed.
gone() { [ -z "$(find . -maxdepth 1 -name 'hvd-run-*')" ] || die "a folder of a start is left: $(ls -d hvd-run-*)"; }

# shellcheck disable=SC2016 # the worker's shell is to see it
by_mpirun "$job_sh" sh -c 'echo "$HVD_HOST:$HVD_LOCAL_RANK is $HVD_RANK of $HVD_SIZE${OMPI_COMM_WORLD_RANK-}" >>"$0"' "$folder/ran"
finish 0
printf '%s\n' node1:{0,1,2}' is '{0,1,2}' of 4' 'node2:0 is 3 of 4' | grep -Fxf - ran | sort -u >right
[ "$(wc -l <right) $(wc -l <ran)" = '4 4' ] || die "not the ranks of mpirun: $(cat ran)"
gone

new_job
by_mpirun "$job_sh" "$trainer" --steps 150 --step-ms 5 --say "$say" --final "$folder/final" --slow-until "$go"
await_round 4
kill -KILL "$(workers HVD_HOST=node2)"
await_round 4
finish 0
[ "$(grep -c ' 150 11325$' final)" = 4 ] || die "not four sums of a training in peace: $(cat final)"
gone

new_job
by_mpirun "$job_sh" sh -c 'exit 7'
finish 1
grep -q 'exit code 7' "$err" || die "a command that fails: $(cat "$err")"
gone

# Processes that do not share the folder: each waits for the others in a folder of its own.
new_job
# shellcheck disable=SC2016 # the same
WAIT=1 by_mpirun sh -c 'RUN=$PWD/$(hostname) exec "$0" true' "$job_sh"
finish 2
grep -qE 'only these hosts came to .*/node1: node1:3; let all|has not written .*/node2/main; let all' "$err" ||
  die "processes that cannot meet say: $(cat "$err")"

new_job
mkdir old
: >old/main
RUN=$folder/old by_mpirun "$job_sh" true
finish 2
grep -q 'old is of another start; remove it' "$err" || die "with the folder of another start: $(cat "$err")"
code=0
"$job_sh" true 2>"$err" || code=$?
[ $code = 2 ] || die "without a launcher: exit code $code"
grep -q 'no launcher has started this process' "$err" || die "without a launcher: $(cat "$err")"
say_line 'mpirun has started four ranks on two hosts as one job; a worker was killed, and the job went on'
