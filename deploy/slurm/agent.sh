#!/bin/bash
# The agent of one node: job.sbatch starts it there by srun, agents.sbatch becomes it. The node has the name that Slurm
# gives it.
set -euo pipefail
: "${SLURMD_NODENAME:?run in a job of Slurm}" "${RUN:?set by job.sbatch}" "${HVD_SLOTS:?set by job.sbatch}"
exec hvd-agent --join "$(cat "$RUN/main")" --token-file "$RUN/token" --name "$SLURMD_NODENAME" --slots "$HVD_SLOTS"
