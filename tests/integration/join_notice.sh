#!/usr/bin/env bash
# SIGUSR2 to `hvd-agent --join`, as schedulers send it before their SIGTERM: the agent passes the notice on, the host is
# drained, and the process stays. Without an agent the signal does nothing but say so.
#
#     join_notice.sh ELASTIC TRAINER
. "$(dirname "$0")/../shell/lib.sh"
. "$(dirname "$0")/../shell/join.sh"
test_begin "$@"
join_token token
port=$((20000 + $$ % 10000))

join_host early '' "127.0.0.1:$port"
await join-early.log 'tried again until'
health() { XDG_STATE_HOME=$folder/$1 "$(dirname "$elastic")/../agent/hvd-agent" --healthy >health.out 2>&1; } # NAME
health early || die "--healthy: $(cat health.out)"
grep -q 'host early waits for a driver, within --join-timeout; no agent runs: .*refused' health.out || die "--healthy: $(cat health.out)"
mkdir none
! health none || die "--healthy finds an agent where there is none: $(cat health.out)"
kill -USR2 "${joined[early]}"
await join-early.log 'no agent runs here'
join_leave early
join_left early

start -np 1 --max-np 2 --discovery join --token-file token --port $port --listen 127.0.0.1 --beat 200ms --lease 5s \
  "$trainer" --step-ms 5 --say "$say"
join_host a '' "127.0.0.1:$port"
HVD_TERMINATION_GRACE=50s join_host b '' "127.0.0.1:$port"
await_round 2
health b || die "--healthy: $(cat health.out)"
[ "$(grep -c 'is connected to \(the driver at .*; its agent runs\|its driver\)$' health.out)" = 2 ] || die "--healthy: $(cat health.out)"
kill -USR2 "${joined[b]}"
await "$err" 'b: the notice is honoured: lead (30|2[0-9])'
await_round 1
kill -USR2 "${joined[b]}" # it may come again
await join-b.log 'its agent tells the driver' 2
join_leave b
await join-b.log 'its workers have (50|49) s to leave'
join_left b
if grep -q 'is revoked' "$err"; then die "a round was revoked: $(grep 'is revoked' "$err")"; fi

# a signal that comes twice, as `timeout` sends it to the process and to its group, is one signal
join_host c '' "127.0.0.1:$port"
await_round 2
kill -TERM "${joined[c]}"
kill -TERM "${joined[c]}"
await_round 1
join_left c
if grep -qE 'is revoked|killed by' "$err"; then die "the second signal has ended a worker: $(grep -E 'is revoked|killed by' "$err")"; fi

# a later signal ends the agent at once: a frozen worker would keep the host for the whole notice
workers | sort >before
join_host d '' "127.0.0.1:$port"
await_round 2
frozen=$(workers | sort | comm -13 before -)
kill -STOP "$frozen"
join_leave d
until grep -q 'a signal while this host leaves: its agent is ended at once' join-d.log; do
  is_alive "${joined[d]}" || die "host d has gone without the second signal: $(cat join-d.log)"
  join_leave d
  read -rt 0.1 <> <(:) || true
done
await_end "${joined[d]}" || die 'host d does not end after the second signal'
! is_alive "$frozen" || die 'the worker of host d has outlived it'
if grep -q 'has not ended in time' join-d.log; then die "no time was over: $(cat join-d.log)"; fi
await_round 1

# a host that has gone after a notice comes back as another machine
join_host b '' "127.0.0.1:$port"
await_round 2
ask stop || die 'stop'
await_driver
join_left a
join_left b
nothing_left
say_line 'SIGUSR2 without an agent does nothing; with one it is a notice, which is honoured'
