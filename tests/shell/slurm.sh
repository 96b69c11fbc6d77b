# shellcheck shell=bash disable=SC2154 # what lib.sh sets
# A cluster of Slurm on this machine: slurmctld, and a slurmd for each of the nodes n1 to n3. Sourced after lib.sh:
#
#     slurm_begin
#     slurm sbatch --parsable ... | squeue ...     any of its commands, for this cluster
#     slurm_node_dies n3; slurm_node n3            a node loses power; slurmd starts there again
#     slurm_end
for program in slurmctld slurmd sbatch; do
  command -v $program >/dev/null || skip "the program $program is not installed (./dev setup slurm)"
done
[ "$(id -u)" = 0 ] || skip 'slurmd needs root'

declare -A slurmds=()
slurm_name=$(hostname)
slurm_port=$((21000 + $$ % 1000 * 8))

# No credentials are checked, as the cluster is this test's alone on 127.0.0.1.
slurm_settings() {
  local n
  cat <<END
ClusterName=t$$
SlurmctldHost=$slurm_name(127.0.0.1)
SlurmctldPort=$slurm_port
SlurmUser=root
SlurmdUser=root
AuthType=auth/none
AuthInfo=cred_expire=5
CredType=cred/none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=1,sched_min_interval=0
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
ReturnToService=2
SlurmdTimeout=10
KillWait=20
JobRequeue=1
StateSaveLocation=$folder/slurm/state
SlurmdSpoolDir=$folder/slurm/spool.%n
SlurmctldPidFile=$folder/slurm/slurmctld.pid
SlurmdPidFile=$folder/slurm/slurmd.%n.pid
SlurmctldLogFile=$folder/slurm/slurmctld.log
SlurmdLogFile=$folder/slurm/slurmd.%n.log
TmpFS=$folder/slurm/tmp.%n
END
  for n in 1 2 3; do
    echo "NodeName=n$n NodeAddr=127.0.0.1 NodeHostname=$slurm_name Port=$((slurm_port + n)) CPUs=2 RealMemory=500"
  done
  echo 'PartitionName=low Nodes=n[1-3] Default=YES State=UP PriorityTier=1 PreemptMode=REQUEUE GraceTime=15'
  echo 'PartitionName=high Nodes=n[1-3] State=UP PriorityTier=10 PreemptMode=OFF'
}

# Its commands and the jobs that it starts carry the mark of this test.
slurm() { BODY_TEST=$folder SLURM_CONF=$folder/slurm/slurm.conf timeout "$PATIENCE" "$@"; }

# slurm_until WORDS REGEX: until this command's answer has such a line.
slurm_until() {
  local until=$((SECONDS + PATIENCE)) said=''
  local -a words
  read -ra words <<<"$1"
  until said=$(slurm "${words[@]}" 2>&1) && grep -qE -- "$2" <<<"$said"; do
    [ $SECONDS -lt $until ] || die "$1 does not say '$2': $said"
    timeout 0.2 tail -f /dev/null
  done
}

slurm_daemon() { # LOG WORDS...
  local log=$1
  shift
  BODY_TEST=$folder SLURM_CONF=$folder/slurm/slurm.conf "$@" -D -f "$folder/slurm/slurm.conf" >>"$log" 2>&1 </dev/null &
}

# slurm_node NAME: slurmd runs, and the node is up.
slurm_node() {
  slurm_daemon "$folder/slurm/$1.out" slurmd -N "$1"
  slurmds[$1]=$!
  slurm_until "sinfo -h -N -n $1 -o %T" '^(idle|mixed|allocated|completing)$'
}

slurm_begin() {
  local n
  mkdir -p "$folder/slurm/state"
  for n in n1 n2 n3; do mkdir -p "$folder/slurm/spool.$n" "$folder/slurm/tmp.$n"; done
  slurm_settings >"$folder/slurm/slurm.conf"
  slurm_daemon "$folder/slurm/slurmctld.out" slurmctld -c
  slurmctld=$!
  for n in n1 n2 n3; do slurm_node $n; done
}

# slurm_steps [NODE]: the processes that Slurm has started for jobs. Their title stands where their environment was, and
# with it our mark.
slurm_steps() {
  local pid
  for pid in $(pgrep -x slurmstepd); do
    [ -z "$(find "/proc/$pid/fd" -lname "$folder/slurm/slurmd.${1:-*}.log*" 2>/dev/null)" ] || echo "$pid"
  done
}
unmarked() { slurm_steps; }

# slurm_node_dies NAME: every process of the node is killed, as by a loss of power: its slurmd, the processes that Slurm
# has started for jobs, and theirs.
slurm_node_dies() {
  local pid
  kill -KILL "${slurmds[$1]}"
  { wait "${slurmds[$1]}"; } 2>/dev/null
  for pid in $(slurm_steps "$1"; marked "SLURMD_NODENAME=$1\$"); do kill -KILL "$pid" 2>/dev/null; done
}

# slurm_none: until no job is left.
slurm_none() {
  local left until=$((SECONDS + PATIENCE))
  while left=$(slurm squeue -h) && [ -n "$left" ]; do
    [ $SECONDS -lt $until ] || die "these jobs do not end: $left"
    timeout 0.2 tail -f /dev/null
  done
}

# slurm_end: no job is left, and the daemons have ended.
slurm_end() {
  local pid
  slurm scancel --user "$(id -un)"
  slurm_none
  for pid in "${slurmds[@]}" "$slurmctld"; do
    kill -TERM "$pid" 2>/dev/null
    { await_end "$pid"; } 2>/dev/null || die "the daemon $pid of Slurm does not end"
  done
}
