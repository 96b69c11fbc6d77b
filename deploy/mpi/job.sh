#!/bin/bash
# A training whose processes are started by mpirun or srun: no driver is started before, and the program needs no MPI.
#
#     mpirun -np 4 --hostfile hosts deploy/mpi/job.sh ./train --my-options
#
# Each process finds its place in the variables of its launcher. The first process of each host becomes the host's agent, with
# as many slots as the launcher has started processes there; the others end at once. Rank 0 is also the driver, and ends
# with its exit code. Ranks go by host, in the order of the launcher.
#
# Variables of the caller, all optional: RUN, a folder that all hosts share, new for each start; MAIN, the address of the host of
# rank 0 (its host name); PORT of the driver; WAIT, the seconds that processes wait for each other (60). Options of
# hvd-elastic are taken from the environment too: HVD_MIN_NP=2.
set -euo pipefail
umask 077

fail() {
  echo "$0: $*" >&2
  exit 2
}
[ $# -gt 0 ] || fail 'no command; write mpirun -np 4 job.sh COMMAND...'

# The variables of the launcher: rank, size, the rank among the processes of this host, their number, and a name of this start.
if [ -n "${OMPI_COMM_WORLD_SIZE:-}" ]; then # Open MPI
  rank=$OMPI_COMM_WORLD_RANK size=$OMPI_COMM_WORLD_SIZE
  local_rank=$OMPI_COMM_WORLD_LOCAL_RANK local_size=$OMPI_COMM_WORLD_LOCAL_SIZE
  start=${PMIX_NAMESPACE:-}${OMPI_MCA_orte_hnp_uri:-}
elif [ -n "${MPI_LOCALNRANKS:-}" ]; then # MPICH and its relatives
  rank=$PMI_RANK size=$PMI_SIZE local_rank=$MPI_LOCALRANKID local_size=$MPI_LOCALNRANKS start=''
elif [ -n "${SLURM_STEP_TASKS_PER_NODE:-}" ]; then # srun; "2(x3),1": three nodes with 2 tasks, one with 1
  rank=$SLURM_PROCID size=$SLURM_STEP_NUM_TASKS local_rank=$SLURM_LOCALID start=$SLURM_JOB_ID.$SLURM_STEP_ID.${SLURM_RESTART_COUNT:-0}
  node=0
  for tasks in ${SLURM_STEP_TASKS_PER_NODE//,/ }; do
    nodes=1
    [[ $tasks != *x* ]] || nodes=${tasks//[^x]*x/} nodes=${nodes%)}
    [ "$SLURM_NODEID" -lt $((node += nodes)) ] || continue
    local_size=${tasks%%(*}
    break
  done
else
  fail 'no launcher has started this process (OMPI_COMM_WORLD_SIZE, MPI_LOCALNRANKS and SLURM_STEP_TASKS_PER_NODE are not' \
    'set); start it with mpirun or srun, or run hvd-elastic -np N COMMAND'
fi
[ "$local_rank" = 0 ] || exit 0
[ -n "${RUN:-$start}" ] ||
  fail 'this launcher gives a start no name; set RUN to a folder that all hosts share, new for each start'
start=$(echo "$start${RUN:-}" | cksum | cut -d ' ' -f 1)
run=${RUN:-$PWD/hvd-run-$start}
name=${SLURMD_NODENAME:-$(hostname)}

# Workers are no processes of the launcher. Open MPI binds a process to a core, and an agent starts all workers of its host.
unset "${!OMPI_@}" "${!PMIX_@}" "${!PMI_@}" MPI_LOCALNRANKS MPI_LOCALRANKID
taskset --pid --cpu-list "0-$(($(nproc --all) - 1))" $$ >/dev/null || true

# put FILE TEXT: the file is there at once, with all of its text.
put() {
  echo "$2" >"$run/.$1.$rank"
  mv "$run/.$1.$rank" "$run/$1"
}

# await_for COMMAND...: until it holds; false if that takes too long. A folder that hosts share has no events.
await_for() {
  local until=$((SECONDS + ${WAIT:-60}))
  until "$@"; do
    [ $SECONDS -lt $until ] || return 1
    sleep 0.1
  done
}

mkdir -p "$run"
[ "$rank" != 0 ] || [ ! -e "$run/main" ] || fail "$run is of another start; remove it, or let RUN name a new folder"
put "host-$(printf %08d "$rank")" "$name:$local_size"
dial=(hvd-agent --token-file "$run/token" --name "$name" --slots "$local_size" --join)
if [ "$rank" != 0 ]; then
  await_for test -s "$run/main" || fail "$name: rank 0 has not written $run/main; let all hosts share this folder, or set RUN"
  exec "${dial[@]}" "$(cat "$run/main")"
fi

trap 'rm -rf "$run"' EXIT
# shellcheck disable=SC2317 # await_for calls it
all_came() { [ "$(cat "$run"/host-* | awk -F : '{ sum += $2 } END { print sum }')" = "$size" ]; }
await_for all_came ||
  fail "only these hosts came to $run: $(cat "$run"/host-* | paste -sd ,); let all hosts share this folder, or set RUN"
port=${PORT:-$((20000 + start % 10000))}
put token "$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')"
hvd-elastic --discovery join --token-file "$run/token" --port "$port" -np "$size" -H "$(cat "$run"/host-* | paste -sd ,)" "$@" &
driver=$!
trap 'kill -TERM $driver; rm -rf "$run"' TERM INT # mpirun sends SIGKILL a second later
put main "${MAIN:-$name}:$port" # the others dial now
"${dial[@]}" "${MAIN:-$name}:$port" &
agent=$!
code=0
until wait $driver || code=$?; ! kill -0 $driver 2>/dev/null; do code=0; done # a signal ends a wait early
kill -TERM $agent 2>/dev/null || true # one that no driver has let in
wait $agent || true
exit $code
