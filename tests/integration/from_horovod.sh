#!/usr/bin/env bash
# Options, variables and files of Horovod and mpirun, taken, or refused with the words of docs/from-horovod.md.
# from_horovod_guides.sh has the command lines of the guides.
#
#     from_horovod.sh ELASTIC TRAINER
. "$(dirname "$0")/../shell/lib.sh"
# shellcheck source=tests/shell/ends.sh
. "$(dirname "$0")/../shell/ends.sh"
test_begin "$@"
unset HVD_LOG_LEVEL # of lib.sh: HOROVOD_LOG_LEVEL counts here
train=("$trainer" --steps 5)

# ---- horovodrun ------------------------------------------------------------------------------------

ends 0 '' -np 2 -H localhost:2 "${train[@]}"
ends 0 '' --gloo -np 2 -H 127.0.0.1:1,127.0.0.2:1 --verbose "${train[@]}"
printf '127.0.0.1 slots=1\n127.0.0.2 slots=1 # a comment\n' >hosts
ends 0 '' -np 2 -hostfile hosts "${train[@]}"
printf '#!/bin/sh\necho 127.0.0.1\n' >discover.sh
chmod +x discover.sh
ends 0 '' -np 2 --min-np 1 --max-np 4 --slots-per-host 2 --host-discovery-script ./discover.sh \
  --blacklist-cooldown-range 60 300 --start-timeout 60 --elastic-timeout 60 --reset-limit 3 "${train[@]}"
ends 2 '-np: missing; the hosts of --host-discovery-script may change, so they do not say' \
  --host-discovery-script ./discover.sh "${train[@]}"
ends 2 '--hosts of the command line and --hostfile of the command line: hosts come from one source' -np 2 \
  -H localhost:2 -hostfile hosts "${train[@]}"
HVD_HOSTFILE=none ends 0 'hosts come from --hosts of the command line, not from --hostfile of HVD_HOSTFILE' -np 2 \
  -H localhost:2 "${train[@]}"
HVD_MAX_NP=1 ends 2 '-np: 2 of the command line is more than --max-np, 1 of HVD_MAX_NP' -np 2 -H localhost:2 "${train[@]}"
ends 0 '--autotune: changes nothing: each round measures' -np 2 -H localhost:2 --autotune "${train[@]}"
ends 0 '' -np 2 -H localhost:2 --fusion-threshold-mb 32 --no-hierarchical-allgather --no-stall-check \
  --stall-check-warning-time-seconds 120 --log-hide-timestamp "${train[@]}"
ends 0 '' -np 2 -H localhost:2 --fusion-threshold-mb 0 "${train[@]}"
# Two workers of a host try two algorithms for 160 KB; 40 steps are more than the trials take.
ends 0 '' -np 2 -H localhost:2 --autotune-log-file tuned.csv "$trainer" --elements 20000 --steps 40
[ "$(head -n 1 tuned.csv)" = round,workers,hosts,bytes,algorithm,microseconds,chosen ] || die "$(cat tuned.csv)"
[ "$(grep -cE '^1,2,1,[0-9]+,(alone|chunks of [0-9]+ KiB),[0-9.]+,1$' tuned.csv)" = 1 ] || die "$(cat tuned.csv)"
ends 0 '' -np 2 -H localhost:2 --autotune-log-file /proc/none "$trainer" --elements 20000 --steps 40
shown '--autotune-log-file /proc/none: '
# A failure is a warning: Horovod's usual level shows it.
HOROVOD_LOG_LEVEL=warning ends 0 'warning job: round 1: ' -np 2 -H localhost:2 --autotune-log-file /proc/none \
  "$trainer" --elements 20000 --steps 40
HOROVOD_LOG_LEVEL=warning ends 1 'warning job: localhost:0#1: exit code 3' -np 1 -H localhost:1 sh -c 'exit 3'
ends 2 '--ssh-identity-file: /proc/none: ' -i /proc/none -np 1 -H localhost:1 true
ends 2 '--no-hierarchical-allreduce: not supported here' -np 1 -H localhost:1 --no-hierarchical-allreduce true
HOROVOD_LOG_HIDE_TIME=True ends 2 'HOROVOD_LOG_HIDE_TIME: "True": the flag, 0 or 1, must be' -np 1 true
for word in --mpi --jsrun --disable-cache '--cycle-time-ms 3.5' '--cache-capacity 2048' --timeline-mark-cycles \
  '--mpi-args=--map-by ppr:6:node' --binding-args=--rankfile --num-nccl-streams=2 --tcp --torus-allreduce \
  --no-hierarchical-allreduce --mpi-threads-disable --gloo-timeout-seconds=60 --nnodes=1:4 --rdzv-endpoint=a:1; do
  if [[ $word == *=* ]]; then set -- "$word"; else read -r -a given <<<"$word" && set -- "${given[@]}"; fi
  ends 2 'not supported here: ' -np 2 "$@" -H localhost:2 "${train[@]}"
done

# ---- mpirun ----------------------------------------------------------------------------------------

mpirun=(--allow-run-as-root -bind-to none -map-by slot -x NCCL_DEBUG=INFO -x NOT_THERE -x PATH)
ends 0 '-x NOT_THERE: there is no such variable here' -np 2 -H localhost:2 "${mpirun[@]}" -mca pml ob1 \
  -mca btl ^openib sh -c 'env | grep ^NCCL'
grep -qF 'NCCL_DEBUG=INFO' "$folder"/*.out || die '-x NCCL_DEBUG=INFO: workers do not have it'
# a HOROVOD_ variable that -x gives to the workers is read as one of the driver's environment
"$elastic" -np 2 -x HOROVOD_FUSION_THRESHOLD=33554432 --print-config >config || die '--print-config'
grep -qF 'fusion-threshold-mb = 32 # HOROVOD_FUSION_THRESHOLD' config || die "$(cat config)"
ends 0 '' -np 2 -H localhost:2 -mca btl_tcp_if_include lo "${train[@]}"
ends 0 '' -np 2 -H localhost:2 -mca btl_tcp_if_exclude docker0,eth77 "${train[@]}"
ends 2 '"eth77": no such network interface' -np 2 -H localhost:2 -mca btl_tcp_if_include lo,eth77 true
ends 2 'sh -c '\''exec taskset' -np 2 -H localhost:2 -bind-to core true
ends 2 '-H a:1,b:1' -np 2 -H localhost:2 -map-by ppr:2:node true
ends 2 'nothing of MPI runs' -np 2 -H localhost:2 -mca btl_openib_if_include mlx5_0 true
ends 2 '-H a:2,b:2' -np 2 --host localhost true

# a host file of mpirun: a repeated host has more slots, but not a second number
printf '127.0.0.1\n127.0.0.1\n127.0.0.2 slots=1 max_slots=4\n' >hosts
ends 0 '' -np 3 -hostfile hosts "${train[@]}"
printf '127.0.0.1 slots=2\n127.0.0.1 slots=2\n' >hosts
ends 1 'hosts: line 2: "127.0.0.1 slots=2": line 1 gives this host 2 slots' -np 2 -hostfile hosts true
ends 0 '' -np 3 -H 127.0.0.1,127.0.0.1,127.0.0.2:1 "${train[@]}"
ends 2 '--hosts: entry 2: "127.0.0.1:1": entry 1 gives this host 1 slots' -np 2 -H 127.0.0.1:1,127.0.0.1:1 true
echo '# none' >hosts
ends 2 '--hostfile hosts: no host with a slot is listed' -hostfile hosts true

# ---- interfaces ------------------------------------------------------------------------------------

ends 0 '' -np 2 -H localhost:2 --network-interfaces lo,lo "${train[@]}"
ends 0 '' -np 2 -H localhost:2 --network-interface ^docker0 "${train[@]}"
ends 2 'this excludes all network interfaces of this machine' -np 2 -H localhost:2 --network-interface \
  "^$(find /sys/class/net -mindepth 1 -printf '%f,' | sed 's/,$//')" true

# ---- variables -------------------------------------------------------------------------------------

export HOROVOD_ELASTIC_TIMEOUT=10 HOROVOD_CYCLE_TIME=3.5 HOROVOD_CACHE_CAPACITY=0 # by then the script has been heard
printf '#!/bin/sh\necho 127.0.0.1:1\n' >discover.sh
ends 3 'only 0 of 2 workers for longer than --elastic-timeout; slots that are listed: 1' -np 2 \
  --host-discovery-script ./discover.sh true
shown 'variables without effect in hvd-elastic: '
[ "$(grep -c 'without effect in' last.err)" = 1 ] || die 'the variables are not named in one line'
ends 0 '--elastic-timeout: 50s of the command line counts, not 10s of HOROVOD_ELASTIC_TIMEOUT' -np 1 \
  -H localhost:1 --elastic-timeout 50 "${train[@]}"
unset HOROVOD_ELASTIC_TIMEOUT HOROVOD_CYCLE_TIME HOROVOD_CACHE_CAPACITY
export HOROVOD_FUSION_THRESHOLD=33554432 HOROVOD_TIMELINE=timeline.json
ends 0 '' -np 2 -H localhost:2 "${train[@]}"
[ -s timeline.json ] || die 'HOROVOD_TIMELINE: there is no timeline'
"$elastic" -np 2 --print-config >config || die '--print-config'
grep -qF 'fusion-threshold-mb = 32 # HOROVOD_FUSION_THRESHOLD' config || die "$(cat config)"
HOROVOD_FUSION_THRESHOLD=1000 ends 2 'HOROVOD_FUSION_THRESHOLD: 1000 bytes are no whole number of MB' -np 1 true
unset HOROVOD_FUSION_THRESHOLD HOROVOD_TIMELINE

# ---- the config file of the guide ------------------------------------------------------------------

cat >config.yaml <<'END'
controller: gloo
params:
  fusion_threshold_mb: 32
  cycle_time_ms: 10
  hierarchical-allreduce: true
stall_check:
  enabled: true
  warning_time_seconds: 120
timeline:
  filename: 'yaml.json'
logging:
  hide_timestamp: true
END
ends 0 'keys of --config-file without effect in hvd-elastic: config.yaml:4: cycle_time_ms' -np 2 -H localhost:2 \
  --config-file config.yaml "${train[@]}"
[ -s yaml.json ] || die 'timeline of config.yaml: there is none'
echo '  warning_tme_seconds: 3' >>config.yaml
ends 2 'config.yaml:13: "warning_tme_seconds": ' -np 2 -H localhost:2 --config-file config.yaml true

# ---- a thread's core -------------------------------------------------------------------------------

# A core that this process may use, and one that no machine has.
core=$(sed -n 's/^Cpus_allowed_list:[[:space:]]*\([0-9]*\).*/\1/p' /proc/self/status)
export HOROVOD_THREAD_AFFINITY=$core
start -np 1 -H localhost:1 "$trainer" --say "$say"
await_round 1
pid=$(workers)
grep -lE "^Cpus_allowed_list:[[:space:]]*$core\$" "/proc/$pid/task/"*/status >bound ||
  die 'no thread of the worker is bound'
if [ "$(nproc)" -gt 1 ]; then
  [ "$(wc -l <bound)" = 1 ] || die "more than one thread is bound: $(cat bound)"
  ! grep -qF "/task/$pid/" bound || die "the program's own thread is bound"
fi
ask stop >stopped || die 'stop'
finish 143
new_job
unset HOROVOD_THREAD_AFFINITY
start -np 1 -H localhost:1 --thread-affinity 1023 --blacklist-forever "${train[@]}"
await_driver
[ "$code" = 1 ] || die "--thread-affinity 1023: exit code $code, not 1"
nothing_left
grep -qF 'HVD_THREAD_AFFINITY: this process cannot use core 1023' "$err" "$out" ||
  die '--thread-affinity 1023: nobody says why'
new_job

# ---- what it is made of ----------------------------------------------------------------------------

"$elastic" -cb >built || die '--check-build'
for word in Frameworks: Controllers: 'Carriers of collectives:' '[X] Gloo' '[ ] MPI'; do
  grep -qF -- "$word" built || die "--check-build does not list $word"
done
# ---- the page about it -----------------------------------------------------------------------------

# Each test that docs/from-horovod.md names exists.
tests=$(dirname "$script")/..
while IFS=. read -r kind name; do
  case $kind in
    unit) file=unit/test_$name.c ;;
    integration) file=integration/$name.sh ;;
    fuzz) file=fuzz/fuzz_$name.c ;;
    story) file=stories/story_$name.c ;;
    conformance) file=conformance/$name.sh ;;
    *) file=$kind/$name ;;
  esac
  [ -e "$tests/$file" ] || grep -rqwF --include=CMakeLists.txt "NAME $kind.$name" "$tests" ||
    die "docs/from-horovod.md: there is no test $kind.$name"
done < <(grep -oE '\b(unit|integration|fuzz|story|chaos|conformance)\.[a-z_]+' "$tests/../docs/from-horovod.md" | sort -u |
  grep -v '\.md$')
all_ended
