#!/usr/bin/env bash
# The machine of the driver is lost: the driver with its folder, and its host's agent and workers, all by SIGKILL. A standby
# takes over from an etcd of three servers; every other time with a server of etcd gone: its leader is killed, or one server
# falls silent. No worker of another host is restarted, and no step that a round has trained on is lost. Last, a driver that
# is stopped for longer than its lease writes nothing and says nothing when it wakes up.
#
#     etcd_host_lost.sh ELASTIC COUNT TIMES [LEASE_SECONDS [OPTIONS OF ETCD...]]
. "$(dirname "$0")/../shell/lib.sh"
. "$(dirname "$0")/../shell/etcd.sh"
. "$(dirname "$0")/../shell/standby.sh"
[ -n "${OWN_NETWORK:-}" ] || skip "no network namespace of its own can be made"
test_begin "$@"
times=$3
lease=${4:-2}
options=("${@:5}")

# The processes of the host $1: its workers, their agent, and the agent's supervisor.
find_host() {
  find_agent "$1"
  mapfile -t host_pids < <(workers "HVD_HOST=$1")
  host_pids+=("$agent" "$(parent "$agent")")
}

# A checksum of all keys of the job in etcd.
etcd_job() { etcdctl --endpoints 127.0.1.1:2379,127.0.1.2:2379,127.0.1.3:2379 get --prefix "tests/$job/" | md5sum; }

declare -A names=([alone]='the machine alone' [leader]='with the leader of etcd' [silent]='with a silent server of etcd')
cluster='1 2 3'
for n in $cluster; do etcd_server "$n" "${options[@]}"; done
for n in $cluster; do etcd_await "$n"; done
start --store "$url" --store-lease "${lease}s" -np 4 --min-np 1 -H 127.0.0.2:2,127.0.0.3:1,127.0.0.4:1 --stall-shutdown 20s \
  "$trainer" "$say" "$folder/stop"
await_round 4
standby
standby
for ((i = 1; i <= times; i++)); do
  host=127.0.0.$((2 + i % 3))
  find_host "$host"
  before=$(comm -23 <(workers | sort) <(workers "HVD_HOST=$host" | sort))
  gone_state=$state
  case $((i % 4)) in
    2) server=$(etcd_leader) && kill -KILL "${etcd_pids[$server]}" ;;
    0) server=$((1 + i / 4 % 3)) && kill -STOP "${etcd_pids[$server]}" ;;
  esac
  lost_ms=$(date +%s%3N)
  kill -KILL "$driver" "${host_pids[@]}" 2>/dev/null
  { wait "$driver"; } 2>/dev/null
  # an agent that still writes its log there may make the first attempt fail
  rm -rf "$gone_state" 2>/dev/null || rm -rf "$gone_state"
  one_takes_over "$lost_ms"
  await_round 4
  [ -z "$(comm -23 <(printf '%s\n' "$before") <(workers | sort))" ] || die "$host was lost, and a worker of another host is gone"
  case $((i % 4)) in
    2)
      etcd_kill "$server"
      etcd_server "$server" "${options[@]}"
      etcd_await "$server"
      ;;
    0)
      kill -CONT "${etcd_pids[$server]}"
      etcd_await "$server"
      ;;
  esac
  standby
done

# an owner that sleeps for longer than its lease: its last word is that it was replaced
before=$(workers | sort)
gone=$driver gone_state=$state gone_err=$err
kill -STOP "$gone"
asleep=$(wc -l <"$gone_err")
one_takes_over "$(date +%s%3N)"
unset 'spent[-1]'
await "$err" 'all 4 train'
known=$(etcd_job)
kill -CONT "$gone"
{ wait "$gone"; } 2>/dev/null
code=$?
[ $code = 5 ] || die "the driver that was replaced ends with $code: $(tail -n 3 "$gone_err")"
[ "$(etcd_job)" = "$known" ] || die "the driver that woke up has written to etcd"
words=$(tail -n "+$((asleep + 1))" "$gone_err" | grep -cvE "another driver .* has taken over|the connection to its agent is gone|hung up during the handshake" || true)
[ "$words" = 0 ] || die "the driver that woke up has said more than its end: $(tail -n "+$((asleep + 1))" "$gone_err")"
[ "$(workers | sort)" = "$before" ] || die "workers were started anew"

# the end: all have counted the same, and no step is gone with which all members of a round have begun
: >"$folder/stop"
await_driver
[ "$code" = 0 ] || die "the driver's exit code is $code, not 0"
standbys_end
for n in $cluster; do etcd_kill "$n"; done
nothing_left
[ "$(sed -n 's/.*counted //p' "$out" | sort -u | wc -l)" = 1 ] || die "not all have counted the same: $(cat "$out")"
sort -n -k 2,2 -k 5,5 "$say" | awk '
  $2 != round { if (begun == size && here < step) { print "round " round " begins at " here ", after " step; wrong = 1; exit }
    if (begun == size) step = here
    round = $2; size = $4; here = $5; begun = 0 }
  $5 != here { print "round " round " begins at " here " and at " $5; wrong = 1; exit }
  { begun++ }
  END { exit wrong }' >"$folder/lost" || die "$(cat "$folder/lost")"
say_line "$times machines of drivers lost, lease $lease s${options[*]:+, etcd ${options[*]}}; from the kill until the successor's term: $(spent_text "${spent[@]}")"
alone=() leader=() silent=()
for ((i = 1; i <= times; i++)); do
  case $((i % 4)) in
    2) leader+=("${spent[i - 1]}") ;;
    0) silent+=("${spent[i - 1]}") ;;
    *) alone+=("${spent[i - 1]}") ;;
  esac
done
for kind in alone leader silent; do
  declare -n of=$kind
  [ ${#of[@]} = 0 ] || say_line "  ${names[$kind]} (${#of[@]}): $(spent_text "${of[@]}")"
done
say_line "no worker of another host restarted, no step lost: $(sed -n 's/.*counted //p' "$out" | head -n 1) steps in $round rounds"
