# shellcheck shell=bash
# shellcheck disable=SC2154 # what lib.sh sets
# Real servers of etcd for a test. Sourced after lib.sh:
#
#     cluster='1 2 3'                               server NUMBER is at $etcd_net.NUMBER
#     for n in $cluster; do etcd_server "$n"; done
#     for n in $cluster; do etcd_await "$n"; done
etcd_net=${etcd_net:-127.0.1}
export ETCDCTL_API=3
for program in etcd etcdctl; do
  command -v $program >/dev/null || skip "the program $program is not installed (etcd-server, etcd-client)"
done

declare -A etcd_pids=()

# etcd_server NUMBER WORDS...: starts it, or starts it again with the data that it had.
etcd_server() {
  local number=$1 n peers=''
  shift
  for n in $cluster; do peers+=${peers:+,}e$n=http://$etcd_net.$n:2380; done
  BODY_TEST=$folder etcd --name "e$number" --data-dir "$folder/etcd$number" --initial-cluster "$peers" \
    --listen-client-urls "${etcd_scheme:-http}://$etcd_net.$number:2379" \
    --advertise-client-urls "${etcd_scheme:-http}://$etcd_net.$number:2379" \
    --listen-peer-urls "http://$etcd_net.$number:2380" --initial-advertise-peer-urls "http://$etcd_net.$number:2380" \
    "$@" >>"$folder/etcd$number.log" 2>&1 </dev/null &
  etcd_pids[$number]=$!
}

etcd_await() {
  local number=$1 until=$((SECONDS + PATIENCE))
  until etcdctl --endpoints "$etcd_net.$number:2379" endpoint health >/dev/null 2>&1; do
    [ $SECONDS -lt $until ] || die "etcd does not answer: $(tail -n 3 "$folder/etcd$number.log")"
    timeout "$NAP" tail -f /dev/null
  done
}

etcd_kill() {
  kill -KILL "${etcd_pids[$1]}" 2>/dev/null
  { wait "${etcd_pids[$1]}"; } 2>/dev/null
}
