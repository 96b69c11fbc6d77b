#!/usr/bin/env bash
# A job in an etcd of three servers, with two standbys: the driver is killed and its state directory removed, together with
# a server of etcd; the driver is stopped for longer than its lease; it is cut off from etcd. Each time one standby takes
# over, no worker is started anew, and a driver that was replaced ends. Then what is refused: a wrong password, a full etcd.
#
#     etcd_standby.sh ELASTIC TRAINER TIMES
. "$(dirname "$0")/../shell/lib.sh"
. "$(dirname "$0")/../shell/etcd.sh"
. "$(dirname "$0")/../shell/standby.sh"
[ -n "${OWN_NETWORK:-}" ] || skip "no network namespace of its own can be made"
test_begin "$@"
times=$3
lease=2

# shows VERB REGEX WORDS...: exit 0, and a line of what the verb prints matches.
shows() {
  local verb=$1 regex=$2
  shift 2
  BODY_TEST=$folder timeout "$PATIENCE" "$elastic" "$verb" "$@" >answer 2>&1 || die "$verb: exit code $?: $(cat answer)"
  grep -qE -- "$regex" answer || die "$verb: no '$regex' in: $(cat answer)"
}

# refuses CODE TEXT VERB WORDS...
refuses() {
  local want=$1 text=$2 code=0
  shift 2
  BODY_TEST=$folder timeout "$PATIENCE" "$elastic" "$@" >answer 2>&1 || code=$?
  [ $code = "$want" ] || die "$*: exit code $code, not $want: $(cat answer)"
  grep -q -- "$text" answer || die "$*: no '$text' in: $(cat answer)"
}

end_now() {
  kill -KILL "$1"
  { wait "$1"; } 2>/dev/null
}

# One standby drives, and both agents are back with all workers.
one_drives() {
  one_takes_over "$1"
  for host in 127.0.0.2 127.0.0.3; do
    await "$err" "$host: (the|an) agent of this host (is back|says hello) with 2 workers"
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
shows status '^driver +none lives; the last one, of term 1, was pid ' --state-dir "$state"
begin ${lease}s
for host in 127.0.0.2 127.0.0.3; do
  await_after "$err" 'is taken over' 1 "$host: (the|an) agent of this host (is back|says hello) with 2 workers"
done
standby
standby
for ((i = 1; i <= times; i++)); do
  gone=$driver gone_state=$state gone_err=$err
  case $((i % 4)) in
    1) # its machine is gone
      end_now "$gone"
      rm -rf "$gone_state"
      one_drives "$(date +%s%3N)"
      ;;
    2) # the leader of etcd goes at the same moment
      leader=$(etcd_leader)
      end_now "$gone"
      etcd_kill "${leader:-1}"
      one_drives "$(date +%s%3N)"
      etcd_server "${leader:-1}"
      etcd_await "${leader:-1}"
      ;;
    3) # it sleeps for longer than its lease, and wakes up
      kill -STOP "$gone"
      one_drives "$(date +%s%3N)"
      kill -CONT "$gone"
      { wait "$gone"; } 2>/dev/null
      code=$?
      [ $code = 5 ] || die "the driver that was replaced ends with $code: $(tail -n 3 "$gone_err")"
      grep -q 'another driver .* has taken over' "$gone_err" || die "the driver that woke up does not say why it ends"
      ;;
    0) # one server of etcd is gone for the whole takeover
      etcd_kill 2
      end_now "$gone"
      one_drives "$(date +%s%3N)"
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

# a verb on another machine, which has no state directory of the job, does not disturb a driver that lives
for verb in status stop; do refuses 1 'the driver of this job lives (pid .*); ask on its machine' $verb "$job" --store "$url"; done
refuses 1 'there is no such job in etcd' status "$job-x" --store "$url"

# the end of the job is the end of its standbys
ask stop >/dev/null || die "stop: exit code $?"
await_driver
[ "$code" = 143 ] || die "the driver's exit code is $code, not 143"
standbys_end
refuses 1 "job $job has ended: " status "$job" --store "$url"

# an orphan: its driver and its state directory are gone, and no standby is there
for known in --store --state-dir; do
  new_job
  start --store "$url" --store-lease ${lease}s -np 4 --min-np 2 -H 127.0.0.2:2,127.0.0.3:2 "$trainer" --say "$say"
  await_round 4
  before=$(workers)
  end_now "$driver"
  if [ $known = --store ]; then
    rm -rf "$state"
    words=("$job" --store "$url")
  else
    words=(--state-dir "$state")
  fi
  shows status "^job +$job: orphaned" "${words[@]}"
  shows status "^to end +hvd-elastic stop $job --store $url\$" "${words[@]}"
  shows status '"silent_s":null' --json "${words[@]}"
  shows hosts '^127\.0\.0\.3 +.* the agent of the host lives on this machine' "${words[@]}"
  [ "$(workers)" = "$before" ] || die 'a look has ended workers'
  refuses 1 "$job" drain 127.0.0.2 "${words[@]}"
  shows stop 'the job had no driver; it was taken over and ended' "${words[@]}"
  grep -q 'could not be reached' answer && die "a host could not be reached: $(cat answer)"
  for pid in $before; do await_end "$pid" || die "the worker $pid is left"; done
  rm -rf "$HOME/.local" # what the driver that has ended the job has left
  refuses 1 "job $job has ended: stopped by hvd-elastic stop" stop "${words[@]}"
done
refuses 4 'etcdctl endpoint health' status "$job" --store etcd://127.0.1.9/tests
for n in $cluster; do etcd_kill "$n"; done
nothing_left
say_line "$times takeovers by a standby, lease ${lease} s; from the event until the successor's term: $(spent_text "${spent[@]}")"

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

# full: no job begins there, and a standby takes a job over as soon as there is room again
new_job
url=etcd://root@127.0.1.7/tests
start -np 1 --store $url --store-password-file "$folder/right" --store-lease 2s -H 127.0.0.2:1 "$trainer" --say "$say"
await_round 1
standby_options=(--store-password-file "$folder/right")
standby
head -c 300000 /dev/zero | tr '\0' x >"$folder/fill"
is_full() { ! ctl --user root:right put fill <"$folder/fill" >/dev/null 2>&1; }
await_true 'the server of etcd without room' is_full
end_now "$driver"
await "$folder/sb$made.err" 'the job cannot be claimed yet, and the claim is tried again: .*etcdctl alarm disarm'
kept_job=$job
refused 4 'etcdctl alarm disarm' --store-password-file "$folder/right"
ctl --user root:right del fill >/dev/null || die "etcdctl del: exit code $?"
revision=$(ctl --user root:right get fill --write-out json | grep -o '"revision":[0-9]*' | cut -d : -f 2)
ctl --user root:right compact "$revision" >/dev/null || die "etcdctl compact: exit code $?"
ctl --user root:right defrag >/dev/null || die "etcdctl defrag: exit code $?"
ctl --user root:right alarm disarm >/dev/null || die "etcdctl alarm disarm: exit code $?"
job=$kept_job
one_takes_over "$(date +%s%3N)"
await "$err" '127.0.0.2: (the|an) agent of this host (is back|says hello) with 1 workers'
ask stop >/dev/null || die "stop: exit code $?"
await_driver
etcd_kill 7
nothing_left
say_line "a wrong password, no password, clear text and a full etcd are refused with their remedies"
