#!/usr/bin/env bash
# Machines give notice that they go, each source in its own way, and every notice is honoured: the workers leave before its
# deadline, and no step is made twice. Then the host leaves the list, and comes back as another machine.
#
#     notices.sh ELASTIC TRAINER COUNT SOURCE...     COUNT notices of each source: aws, gcp, azure, file, command,
#                                                    sigterm, grace, and as in a job of Slurm: kill_wait, usr2
. "$(dirname "$0")/../shell/lib.sh"
. "$(dirname "$0")/../shell/metadata.sh"
count=$3
sources=("${@:4}")
test_begin "$1" "$2"
metadata_start
metadata_agents

hosts=(127.0.0.1 127.0.0.2 127.0.0.3)
list() { printf '%s:1\n' "$@" >"$folder/hosts.new" && mv "$folder/hosts.new" "$folder/hosts"; }
printf '#!/bin/sh\ncat "%s"\n' "$folder/hosts" >"$folder/discover"
chmod +x "$folder/discover"

# give SOURCE HOST: the machine gives notice.
give() {
  case $1 in
  aws | gcp | azure) metadata notice "host=$2" "cloud=$1" in=120 >/dev/null ;;
  file) echo '120s the file says so' >"$folder/notice.$2" ;;
  command) echo "$(date -u -d '+120 seconds' +%Y-%m-%dT%H:%M:%SZ) the command says so" >"$folder/line.$2" ;;
  sigterm | grace | kill_wait)
    find_agent "$2"
    kill -TERM "$agent"
    ;;
  usr2) # to the supervisor, which passes it on
    find_agent "$2"
    kill -USR2 "$(parent "$agent")"
    ;;
  esac
}
take_back() {
  metadata clear "host=$1" >/dev/null
  rm -f "$folder/notice.$1" "$folder/line.$1"
}

# In a job of Slurm agents find their times in its settings and variables.
slurm=(SLURM_JOB_ID=1 SLURM_JOB_PARTITION=low "SLURM_CONF=$folder/slurm.conf" SBATCH_SIGNAL=B:USR2@90)
printf 'KillWait=60\nPartitionName=low Nodes=n1 GraceTime=20\n' >"$folder/slurm.conf"
declare -A granted=([sigterm]=30s [grace]=45s [kill_wait]=20s [usr2]=1m30s)

honoured=0
for source in "${sources[@]}"; do
  new_job
  made=$folder/$job.made
  list "${hosts[@]}"
  case $source in
  file) preemption="file:$folder/notice.@HOST@" ;;
  command) preemption="command:cat $folder/line.@HOST@ 2>/dev/null || true" ;;
  sigterm | grace) preemption=none ;;
  kill_wait | usr2) preemption=slurm ;;
  *) preemption=$source ;;
  esac
  case $source in
  grace) export HVD_TERMINATION_GRACE=45s ;;
  kill_wait | usr2) export "${slurm[@]}" ;;
  esac
  start -np 3 --min-np 2 --max-np 3 --host-discovery-script "$folder/discover" --preemption "$preemption" \
    "$trainer" --step-ms 5 --steps 100000000 --say "$say" --made "$made"
  unset HVD_TERMINATION_GRACE "${slurm[@]%%=*}"
  await_round 3
  for ((i = 1; i <= count; i++)); do
    host=${hosts[1 + i % 2]}
    give "$source" "$host"
    await "$err" 'the notice is honoured|the notice was not honoured' "$i"
    take_back "$host"
    await_round 2
    others=()
    for other in "${hosts[@]}"; do [ "$other" = "$host" ] || others+=("$other"); done
    list "${others[@]}"
    await "$err" "hosts: .*-$host" $(((i + 1) / 2))
    list "${hosts[@]}"
    await_round 3
  done
  status=$(ask status --json)
  ask stop >/dev/null || die "stop: exit code $?"
  await_driver
  nothing_left

  said=$(grep -c 'the notice is honoured' "$err")
  [ "$said" = "$count" ] || die "$source: $said of $count notices were honoured"
  time=${granted[$source]:-}
  [ -z "$time" ] || [ "$(grep -c "is drained within $time: SIG" "$err")" = "$count" ] || die "$source: the time is not $time"
  grep -q "\"notices\":{\"ended\":$count,\"honoured\":$count,\"under_way\":0" <<<"$status" || die "status says: $status"
  twice=$(awk '$2 == 0 { print $3 }' "$made" | sort | uniq -d | wc -l)
  [ "$twice" = 0 ] || die "$source: $twice steps were made twice"
  if grep -q 'is revoked' "$err"; then die "$source: a round was revoked"; fi
  if [ "$source" = azure ]; then
    acknowledged=$(($(metadata_count "${hosts[1]}" acknowledged) + $(metadata_count "${hosts[2]}" acknowledged)))
    [ "$acknowledged" -ge 1 ] || die 'no event was acknowledged'
  fi
  honoured=$((honoured + said))
  sed -n 's/.*honoured: lead \([0-9.a-z]*\), margin \([0-9.a-z]*\);.*/\1 \2/p' "$err" |
    python3 -c '
import re, statistics, sys
def seconds(text):
    units = {"us": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "h": 3600}
    return sum(float(n) * units[u] for n, u in re.findall(r"([0-9.]+)([a-z]+)", text))
rows = [[seconds(word) for word in line.split()] for line in sys.stdin]
for name, values in zip(("lead", "margin", "to leave"), list(zip(*rows)) + [[a - b for a, b in rows]]):
    print(f"  {name}: median {statistics.median(values):.2f} s, least {min(values):.2f} s, most {max(values):.2f} s")
' >"$folder/figures"
  say_line "$source: $said of $count notices honoured, 0 steps made twice"
  cat "$folder/figures"
done
[ "$honoured" = $((count * ${#sources[@]})) ] || die "$honoured notices were honoured"
