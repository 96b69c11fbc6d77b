#!/usr/bin/env bash
# A program of hvd that mpirun starts: several processes are refused with the right command, which then works; one
# process trains alone, and so does each process with HVD_ALONE=1.
#
#     launchers.sh ELASTIC TRAINER
. "$(dirname "$0")/../shell/lib.sh"
test_begin "$1" "$2"
command -v mpirun >/dev/null || {
  echo 'skipped: there is no mpirun; install openmpi-bin'
  exit 77
}

# by_mpirun CODE WORD...: mpirun ends with 0, or not, as said; the output is in the file `said`.
by_mpirun() {
  local want=$1 code=0
  shift
  : >stop
  OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout "$PATIENCE" \
    mpirun --oversubscribe -mca plm isolated "$@" "$trainer" alone.say stop >said 2>&1 </dev/null || code=$?
  rm stop
  [ $((code != 0)) = "$want" ] || die "mpirun $*: exit code $code: $(cat said)"
}

by_mpirun 1 -np 2
grep -q 'mpirun started this process as one of 2 (OMPI_COMM_WORLD_SIZE is set)' said || die "mpirun -np 2 says: $(cat said)"
command=$(grep -o 'hvd-elastic -np 2 COMMAND' said | head -n 1)
[ -n "$command" ] || die "mpirun -np 2 names no command: $(cat said)"
if grep -q counted said; then die "a process has trained: $(cat said)"; fi
by_mpirun 0 -np 1
[ "$(grep -c 'counted 1$' said)" = 1 ] || die "mpirun -np 1 says: $(cat said)"
by_mpirun 0 -np 2 -x HVD_ALONE=1
[ "$(grep -c 'counted 1$' said)" = 2 ] || die "with HVD_ALONE=1 each process trains: $(cat said)"

# the command that was named, in the environment of mpirun
new_job
export OMPI_COMM_WORLD_SIZE=2
start -np 2 "$trainer" "$say" "$folder/stop"
await_round 2
: >stop
finish 0
[ "$(grep -c 'counted [1-9]' "$out")" = 2 ] || die "two workers were to say what they have counted: $(cat "$out")"
say_line 'two processes of mpirun are refused; one trains, and two with HVD_ALONE=1; hvd-elastic trains with both'
