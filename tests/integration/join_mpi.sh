#!/usr/bin/env bash
# Open MPI starts the agents: `mpirun hvd-agent --join` on four hosts, which are processes of this machine with host names of
# their own. A worker is killed and comes back; a host is lost, and mpirun leaves the others alone; the job ends, and so
# does mpirun.
#
#     join_mpi.sh ELASTIC TRAINER
. "$(dirname "$0")/../shell/lib.sh"
. "$(dirname "$0")/../shell/mpi.sh"
. "$(dirname "$0")/../shell/join.sh"
test_begin "$@"
mpi_begin
agent_program=$(realpath "$(dirname "$elastic")/../agent/hvd-agent")
port=$((20000 + $$ % 10000))
join_token token

start -np 4 --min-np 2 --discovery join --token-file token --port $port --listen 127.0.0.1 --beat 200ms --lease 5s --driver-grace 5s \
  "$trainer" --say "$say"
BODY_TEST=$folder XDG_STATE_HOME=$folder/agents \
  mpirun "${mpi_hosts[@]}" \
  --enable-recovery --mca orte_abort_on_non_zero_status 0 \
  --host node1,node2,node3,node4 -np 4 --map-by node \
  "$agent_program" --join 127.0.0.1:$port --token-file "$folder/token" >mpirun.log 2>&1 </dev/null &
mpirun=$!
await_round 4
[ "$(ask hosts | grep -c '^node[1-4] ')" = 4 ] || die "not four hosts: $(ask hosts)"

kill -KILL "$(workers HVD_HOST=node2 | head -n 1)"
await_round 4

# the host is lost: its agent, the process that has joined for it, and its workers
victims=$(for pid in $(marked); do
  [ "$(variable "$pid" OMPI_COMM_WORLD_RANK)" != 2 ] || echo "$pid"
done)
for pid in $victims; do kill -KILL "$pid" 2>/dev/null; done
await_round 3
is_alive $mpirun || die "mpirun has ended: $(cat mpirun.log)"

ask stop || die "stop: exit code $?"
await_driver
{ await_end $mpirun; } 2>/dev/null || die "mpirun does not end: $(cat mpirun.log)"
nothing_left
say_line 'mpirun has started four agents; a worker and a host were killed, and the job went on'
