# shellcheck shell=bash
# shellcheck disable=SC2154,SC2034 # what lib.sh sets; what tests read
# A real mpirun on hosts that are processes of this machine with host names of their own. Sourced after lib.sh:
#
#     mpi_begin                                   skips the test where that cannot be
#     mpirun "${mpi_hosts[@]}" --host a:2,b:1 -np 3 PROGRAM
mpi_begin() {
  command -v mpirun >/dev/null || skip 'there is no mpirun; install openmpi-bin'
  unshare --uts true 2>/dev/null || skip 'hosts with names of their own need root (unshare --uts)'
  # what mpirun runs in place of ssh: OPTIONS... HOST COMMAND...
  cat >rsh <<'END'
#!/bin/bash
while [ "${1#-}" != "$1" ]; do shift; done
host=$1
shift
exec unshare --uts sh -c "hostname $host; exec /bin/sh -c \"\$0\"" "$*"
END
  chmod +x rsh
  mpi_hosts=(--mca plm rsh --mca plm_rsh_agent "$folder/rsh" --mca plm_rsh_no_tree_spawn 1)
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
}
