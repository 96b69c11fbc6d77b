#!/usr/bin/env bash
# Hosts of a batch job, from the variables that LSF, PBS and SGE set: without -np the job has as many workers as the batch job
# has slots; a file of hosts that changes is followed; a driver that takes the job over in another batch job uses the hosts of
# that one, and a driver that is in no batch job is refused. The batch systems are played by their variables.
#
#     batch.sh ELASTIC TRAINER
. "$(dirname "$0")/../shell/lib.sh"
test_begin "$@"
unset LSB_DJOB_HOSTFILE LSB_MCPU_HOSTS LSB_HOSTS PBS_NODEFILE PE_HOSTFILE COBALT_NODEFILE

# has_run WORDS...: one command in each of these slots.
# shellcheck disable=SC2016 # the worker's shell is to see it
has_run() {
  : >ran
  start "$@" --log-level warning sh -c 'echo "$HVD_HOST:$HVD_SLOT of $HVD_SIZE" >>"$0"' "$folder/ran"
  finish 0
  printf '%s\n' '127.0.0.1:0 of 3' '127.0.0.2:0 of 3' '127.0.0.2:1 of 3' | cmp -s - <(sort ran) ||
    die "$*: not in the slots of the batch job: $(cat ran "$err")"
  new_job
}

LSB_HOSTS='127.0.0.1 127.0.0.2 127.0.0.2' has_run --batch-system auto
LSB_MCPU_HOSTS='127.0.0.1 1 127.0.0.2 2' has_run --batch-system lsf
printf '127.0.0.1 1 all.q@127.0.0.1 UNDEFINED\n127.0.0.2 2 all.q@127.0.0.2 <NULL>\n' >pe
PE_HOSTFILE=$folder/pe HVD_BATCH_SYSTEM=sge has_run -np 3

# refused WORDS TEXT: at once, with this text.
refused() {
  start --batch-system "$1" true
  finish 2
  grep -qF -- "--batch-system $1: $2" "$err" || die "--batch-system $1 says: $(cat "$err")"
  new_job
}
refused auto 'this process is in no batch job, as none of LSB_DJOB_HOSTFILE, '
LSB_MCPU_HOSTS='127.0.0.1 0' refused lsf 'no host with a slot is listed'
PE_HOSTFILE=$folder/none refused sge 'PE_HOSTFILE: '

# PBS: two chunks of one line each, with two slots for each line
printf '127.0.0.1\n127.0.0.2\n' >first
PBS_NODEFILE=$folder/first start --batch-system pbs --slots-per-host 2 --min-np 1 --max-np 8 "$trainer" --step-ms 5 --say "$say"
await_round 4
printf '127.0.0.1\n127.0.0.2\n127.0.0.3\n' >new
mv new first
await_round 6
kill_driver
start_again() {
  BODY_TEST=$folder "$elastic" --resume "$job" --state-dir "$state" >>"$out" 2>>"$err" </dev/null &
  driver=$!
}
start_again
await_driver
[ "$code" != 0 ] || die 'a driver in no batch job has taken the job over'
grep -q -- '--batch-system pbs: this process is in no batch job, as none of PBS_NODEFILE is set' "$err" ||
  die "a driver in no batch job says: $(tail -n 3 "$err")"
printf '127.0.0.%s\n' 4 1 2 3 >second
PBS_NODEFILE=$folder/second start_again
await_round 8
[ "$(ask hosts | grep -c '^127.0.0.[1-4] ')" = 4 ] || die "not the hosts of the second batch job: $(ask hosts)"
ask stop || die "stop: exit code $?"
finish 143
say_line 'jobs have run on the hosts of LSF, SGE and PBS, and a job has moved from one batch job to the next'
