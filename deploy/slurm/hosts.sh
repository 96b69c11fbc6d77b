#!/bin/bash
# The hosts of a training for --host-discovery-script: the nodes of this user's running jobs that have the name of the
# driver's job, without those that Slurm drains or has lost. Two questions to slurmctld each time.
set -euo pipefail
nodes=$(squeue --noheader --me --name "$SLURM_JOB_NAME" --states RUNNING --format %N | paste -s -d ,)
[ -n "$nodes" ] || exit 0
sinfo --noheader --Node --nodes "$nodes" --format '%N %T' | sort -u |
  awk -v slots="${HVD_SLOTS:-1}" '$2 !~ /drain|down|fail|unknown/ { print $1 ":" slots }'
