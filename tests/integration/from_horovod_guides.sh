#!/usr/bin/env bash
# The command lines of Horovod's guides, page by page, as they stand there: hosts, paths and programs replaced. A line
# that several pages have is run once.
#
#     from_horovod_guides.sh ELASTIC TRAINER
. "$(dirname "$0")/../shell/lib.sh"
# shellcheck source=tests/shell/ends.sh
. "$(dirname "$0")/../shell/ends.sh"
test_begin "$@"
train=("$trainer" --steps 5)
no_effect='variables without effect in hvd-elastic:'

# program NAME LINE...: which prints these lines.
program() {
  printf '#!/bin/sh\ncat <<END\n%s\nEND\n' "$(printf '%s\n' "${@:2}")" >"$1"
  chmod +x "$1"
}

# ---- summary, running, docker, benchmarks ----------------------------------------------------------

# More slots than processes: the size is -np.
ends 0 '' -np 2 -H localhost:4 "$trainer" --steps 5 --say "$folder/two"
[ "$(cut -d ' ' -f 4 two | sort | uniq -c | xargs)" = '2 2' ] || die "-np 2 -H localhost:4: $(cat two)"
ends 0 '' -np 4 -H localhost:4 "${train[@]}"
ends 0 '' -np 16 -H 127.0.0.1:4,127.0.0.2:4,127.0.0.3:4,127.0.0.4:4 -p 12345 "${train[@]}"
printf '127.0.0.%s slots=2\n' 1 2 3 >myhostfile
ends 0 '' -np 6 -hostfile myhostfile "${train[@]}"

# ---- elastic, and a guide to elastic jobs on a cloud -----------------------------------------------

program discover_hosts.sh 127.0.0.1:4 127.0.0.2:4
program discover_names.sh 127.0.0.1 127.0.0.2
ends 0 '' -np 8 --host-discovery-script discover_hosts.sh "${train[@]}"
ends 0 '' -np 8 --host-discovery-script discover_names.sh --slots 4 "${train[@]}"
ends 0 '' -np 8 --min-np 4 --max-np 12 --host-discovery-script discover_hosts.sh "${train[@]}"
ends 0 '' --num-proc 2 --min-np 1 --start-timeout 600 --host-discovery-script "$folder/discover_hosts.sh" -p 12345 \
  "${train[@]}"

# ---- autotune, timeline, tensor fusion -------------------------------------------------------------

ends 0 '--autotune: changes nothing: each round measures' -np 4 --autotune "${train[@]}"
ends 0 '' -np 4 --autotune --autotune-log-file autotune_log.csv "${train[@]}"
ends 2 '--cache-capacity: not supported here: ' -np 4 --autotune --cache-capacity 1024 --no-hierarchical-allgather \
  "${train[@]}"
ends 0 '' -np 4 --autotune --autotune-warmup-samples 5 --autotune-steps-per-sample 20 \
  --autotune-bayes-opt-max-samples 40 "${train[@]}"
ends 0 '' -np 4 --autotune --autotune-gaussian-process-noise 0.75 "${train[@]}"
HOROVOD_TIMELINE=$folder/timeline.json HOROVOD_TIMELINE_MARK_CYCLES=1 ends 0 "$no_effect HOROVOD_TIMELINE_MARK_CYCLES" \
  -np 4 "${train[@]}"
[ -s timeline.json ] || die 'HOROVOD_TIMELINE: there is no timeline'
ends 0 '' -np 4 --timeline-filename "$folder/option.json" "${train[@]}"
[ -s option.json ] || die '--timeline-filename: there is no timeline'
ends 2 '--timeline-mark-cycles: not supported here: ' -np 4 --timeline-filename "$folder/option.json" \
  --timeline-mark-cycles "${train[@]}"
HOROVOD_FUSION_THRESHOLD=33554432 ends 0 '' -np 4 "${train[@]}"
HOROVOD_FUSION_THRESHOLD=0 ends 0 '' -np 4 "${train[@]}"
HOROVOD_CYCLE_TIME=3.5 ends 0 "$no_effect HOROVOD_CYCLE_TIME" -np 4 "${train[@]}"
ends 2 '--cycle-time-ms: not supported here: ' -np 4 --cycle-time-ms 3.5 "${train[@]}"

# ---- mpi, troubleshooting: the words after mpirun --------------------------------------------------

usual=(-np 4 -H '127.0.0.1:2,127.0.0.2:2' -bind-to none -map-by slot -x NCCL_DEBUG=INFO -x PATH)
tcp=(-mca pml ob1 -mca btl ^openib)
ends 0 '' "${usual[@]}" -x LD_LIBRARY_PATH "${tcp[@]}" "${train[@]}"
ends 0 '' "${usual[@]}" -mca plm_rsh_args '-p 12345' "${tcp[@]}" "${train[@]}"
ends 0 "$no_effect HOROVOD_MPI_THREADS_DISABLE" "${usual[@]}" -x HOROVOD_MPI_THREADS_DISABLE=1 -mca pml ob1 "${train[@]}"
# of hosts that are not this machine's loopback the guide excludes lo
ends 0 '' "${usual[@]}" -x NCCL_SOCKET_IFNAME=^lo,docker0 "${tcp[@]}" -mca btl_tcp_if_exclude docker0 "${train[@]}"
ends 0 "$no_effect HOROVOD_CYCLE_TIME" -np 2 -x HOROVOD_FUSION_THRESHOLD=33554432 -x HOROVOD_CYCLE_TIME=3.5 "${train[@]}"
ends 0 "$no_effect HOROVOD_TIMELINE_MARK_CYCLES" -np 2 -x HOROVOD_TIMELINE="$folder/exported.json" \
  -x HOROVOD_TIMELINE_MARK_CYCLES=1 "${train[@]}"
[ -s exported.json ] || die '-x HOROVOD_TIMELINE: there is no timeline'
ends 0 'HOROVOD_AUTOTUNE: changes nothing: each round measures' -np 2 -x HOROVOD_AUTOTUNE=1 \
  -x HOROVOD_AUTOTUNE_LOG="$folder/exported.csv" "$trainer" --elements 20000 --steps 40
[ -s exported.csv ] || die '-x HOROVOD_AUTOTUNE_LOG: there is no log'
ends 2 'nothing of MPI runs' -np 2 --mca btl_smcuda_use_cuda_ipc 0 "${train[@]}"

# ---- LSF, oneCCL, installation ---------------------------------------------------------------------

# LSF says how many: not here
ends 2 '-np: missing; say with -np or --min-np' "${train[@]}"
ends 0 '' -np 6 "${train[@]}"
ends 2 '--mpi-args: not supported here: ' --mpi-args=-gpu "${train[@]}"
# the words of Intel's mpirun
ends 2 '--ppn: not supported here: ' -n 4 -ppn 2 -hostfile myhostfile "${train[@]}"
"$elastic" --check-build >built || die '--check-build'
grep -qF '[X] Gloo' built || die "--check-build: $(cat built)"
all_ended
