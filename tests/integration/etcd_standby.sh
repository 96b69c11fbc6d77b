#!/usr/bin/env bash
# A job in an etcd of three servers, with two standbys: the driver is killed and its state directory removed, together with
# a server of etcd; the driver is stopped for longer than its lease; it is cut off from etcd. Each time one standby takes
# over, no worker is started anew, and a driver that was replaced ends. Then what is refused: a wrong password, a full etcd.
#
#     etcd_standby.sh ELASTIC TRAINER TIMES
. "$(dirname "$0")/../shell/lib.sh"
. "$(dirname "$0")/../shell/etcd.sh"
[ -n "${OWN_NETWORK:-}" ] || skip "no network namespace of its own can be made"
test_begin "$@"
times=$3
lease=2
# ---- drivers ------------------------------------------------------------------------------------------

# The number of the server that leads, by the field of "endpoint status" that says so.
etcd_leader() {
  local n
  for n in $cluster; do
    etcdctl --endpoints "127.0.1.$n:2379" endpoint status 2>/dev/null | grep -q ', true,' && echo "$n" && return
  done
}

url=etcd://127.0.1.1:2379,127.0.1.2:2379,127.0.1.3:2379/tests
standbys=()
made=0

standby() {
  made=$((made + 1))
  BODY_TEST=$folder "$elastic" --standby "$job" --store "$url" --state-dir "$folder/sb$made" \
    >>"$folder/sb$made.out" 2>>"$folder/sb$made.err" </dev/null &
  standbys+=("$made:$!")
  await "$folder/sb$made.err" 'waiting until it has no driver'
}

end_now() {
  kill -KILL "$1"
  { wait "$1"; } 2>/dev/null
}

# Waits until one of the standbys drives and both agents are back with all workers; it becomes $driver. In $spent the time
# since $1, in ms.
one_takes_over() {
  local entry rest=() files=() won='' stamp
  for entry in "${standbys[@]}"; do files+=("$folder/sb${entry%:*}.err"); done
  timeout "$PATIENCE" tail -q -n +1 -s $NAP -f "${files[@]}" | grep -E -m 1 ' term [0-9]+, ' >"$folder/found" || true
  [ -s "$folder/found" ] || die "no standby takes over: $(tail -n 3 "${files[@]}")"
  for entry in "${standbys[@]}"; do
    if grep -q ' term [0-9]*, ' "$folder/sb${entry%:*}.err"; then
      [ -z "$won" ] || die "two standbys drive: $won and $entry"
      won=$entry
    else
      rest+=("$entry")
    fi
  done
  standbys=("${rest[@]}")
  stamp=$(date -d "$(cut -d ' ' -f 1 "$folder/found")" +%s%3N)
  spent+=($((stamp - $1)))
  driver=${won#*:} state=$folder/sb${won%:*} err=$folder/sb${won%:*}.err
  for host in 127.0.0.2 127.0.0.3; do
    await "$err" "$host: (its|an) agent (is back|says hello) with 2 workers"
  done
  [ "$(workers)" = "$before" ] || die "workers were started anew"
}

# ---- the campaign ---------------------------------------------------------------------------------------

cluster='1 2 3'
for n in $cluster; do etcd_server "$n"; done
for n in $cluster; do etcd_await "$n"; done
begin() { # LEASE
  start --store "$url" --store-lease "$1" -np 4 --min-np 2 -H 127.0.0.2:2,127.0.0.3:2 "$trainer" --step-ms 5 --say "$say"
}
begin 1h
await_round 4
before=$(workers)
# its successor in the same folder does not wait for that lease
kill_driver
begin ${lease}s
for host in 127.0.0.2 127.0.0.3; do
  await_after "$err" 'is taken over' 1 "$host: (its|an) agent (is back|says hello) with 2 workers"
done
spent=()
standby
standby
for ((i = 1; i <= times; i++)); do
  gone=$driver gone_state=$state gone_err=$err
  case $((i % 4)) in
    1) # its machine is gone
      end_now "$gone"
      rm -rf "$gone_state"
      one_takes_over "$(date +%s%3N)"
      ;;
    2) # the leader of etcd goes at the same moment
      leader=$(etcd_leader)
      end_now "$gone"
      etcd_kill "${leader:-1}"
      one_takes_over "$(date +%s%3N)"
      etcd_server "${leader:-1}"
      etcd_await "${leader:-1}"
      ;;
    3) # it sleeps for longer than its lease, and wakes up
      kill -STOP "$gone"
      one_takes_over "$(date +%s%3N)"
      kill -CONT "$gone"
      { wait "$gone"; } 2>/dev/null
      code=$?
      [ $code = 5 ] || die "the driver that was replaced ends with $code: $(tail -n 3 "$gone_err")"
      grep -q 'another driver .* has taken over' "$gone_err" || die "the driver that woke up does not say why it ends"
      ;;
    0) # one server of etcd is gone for the whole takeover
      etcd_kill 2
      end_now "$gone"
      one_takes_over "$(date +%s%3N)"
      etcd_server 2
      etcd_await 2
      ;;
  esac
  standby
done
[ "$(awk '{ print $2 }' "$say" | sort -u)" = "$round" ] || die "the round has changed: $(cat "$say")"

# the last one drives: a worker that dies is replaced
kill -KILL "$(workers | head -n 1)"
await_round 4

# a second driver of the job is refused while one lives
BODY_TEST=$folder "$elastic" --resume "$job" --store "$url" --state-dir "$folder/second" >"$folder/second.out" 2>&1 </dev/null
code=$?
[ $code = 2 ] || die "a second driver ends with $code: $(cat "$folder/second.out")"
grep -q 'the driver of this job lives' "$folder/second.out" || die "a second driver says $(cat "$folder/second.out")"

# the end of the job is the end of its standbys
ask stop >/dev/null || die "stop: exit code $?"
await_driver
[ "$code" = 143 ] || die "the driver's exit code is $code, not 143"
for entry in "${standbys[@]}"; do
  { wait "${entry#*:}"; } 2>/dev/null
  code=$?
  [ $code = 0 ] || die "a standby of a job that has ended ends with $code"
  grep -q 'has ended: ' "$folder/sb${entry%:*}.err" || die "a standby does not say why it ends"
done
for n in $cluster; do etcd_kill "$n"; done
nothing_left
mapfile -t spent < <(printf '%s\n' "${spent[@]}" | sort -n)
say_line "$times takeovers by a standby, lease ${lease} s; from the event until the successor's term:" \
  "median ${spent[times / 2]} ms, most ${spent[times - 1]} ms"

# ---- what is refused --------------------------------------------------------------------------------------

cluster=7
etcd_server 7 --quota-backend-bytes 4000000
etcd_await 7
ctl() { etcdctl --endpoints 127.0.1.7:2379 "$@"; }
for words in 'user add root:right' 'user grant-role root root' 'auth enable'; do
  # shellcheck disable=SC2086 # words
  ctl $words >/dev/null || die "etcdctl $words: exit code $?"
done
echo wrong >"$folder/wrong"
echo right >"$folder/right"
# refused CODE TEXT WORDS...
refused() {
  local want=$1 text=$2
  shift 2
  new_job
  start -np 1 --store etcd://root@127.0.1.7/tests "$@" true
  await_driver
  [ "$code" = "$want" ] || die "$*: the exit code is $code, not $want: $(cat "$err")"
  grep -q -- "$text" "$err" || die "$*: no '$text' in $(cat "$err")"
}
refused 4 '--store-password-file' --store-password-file "$folder/wrong"
refused 4 '--store-password-file' --store etcd://127.0.1.7/tests
refused 2 '--store-password-file' --store etcd://root:right@127.0.1.7/tests
refused 2 '--store-insecure' --store etcd://10.1.2.3/tests
refused 4 'etcdctl endpoint health' --store etcd://127.0.1.9/tests
refused 0 'every command ended with 0' --store-password-file "$folder/right"

# by TLS: only with the authority that has signed the certificate, and for the address that is in it
openssl req -x509 -newkey rsa:2048 -nodes -keyout "$folder/key.pem" -out "$folder/cert.pem" -days 2 -subj /O=etcd \
  -addext 'subjectAltName=IP:127.0.1.8' 2>/dev/null || die "openssl makes no certificate"
cluster=8
etcd_scheme=https etcd_server 8 --cert-file "$folder/cert.pem" --key-file "$folder/key.pem"
refused 0 'every command ended with 0' --store etcds://127.0.1.8/tests --store-ca "$folder/cert.pem"
refused 4 'certificate' --store etcds://127.0.1.8/tests
refused 2 'etcds://' --store etcd://127.0.1.8/tests --store-ca "$folder/cert.pem"
etcd_kill 8

# full: a driver cannot claim a job
head -c 300000 /dev/zero | tr '\0' x >"$folder/fill"
until ! ctl --user root:right put fill <"$folder/fill" >/dev/null 2>&1; do :; done
refused 4 'etcdctl alarm disarm' --store-password-file "$folder/right"
etcd_kill 7
nothing_left
say_line "a wrong password, no password, clear text and a full etcd are refused with their remedies"
