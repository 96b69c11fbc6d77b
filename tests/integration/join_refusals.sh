#!/usr/bin/env bash
# Tokens that do not let a host join, names that are taken, and hosts that two sources must name: each
# refusal is one clear line on the host, and one in the log of the driver.
#
#     join_refusals.sh ELASTIC TRAINER JOINERS
. "$(dirname "$0")/../shell/lib.sh"
. "$(dirname "$0")/../shell/join.sh"
joiners=$(realpath "$3")
test_begin "$@"
join_token token
port=$((20000 + $$ % 10000))
place=127.0.0.1:$port

# with FILE NAME WORDS...: a host joins with the token in FILE
with() { token_file=$1 join_host "$2" '' "$place" --join-timeout 20s "${@:3}"; }

start -np 1 --max-np 4 --discovery join --token-file token --port $port --listen 127.0.0.1 --beat 200ms --lease 5s \
  "$trainer" --say "$say"
join_host a '' "$place"
await_round 1

# a token that was never made: the handshake ends, and the host tries on until its time is over
join_token other
with other wrong
# expired, used up, revoked, for another host
ask token create --lifetime 100ms >short || die 'token create --lifetime'
ask token create --uses 1 >once || die 'token create --uses'
ask token create --host a2 >bound || die 'token create --host'
ask token create >gone || die 'token create'
grep -qxE '[0-9a-f]{64}' once || die "not a token: $(cat once)"
id=$(ask token list | awk '$2 == "good" && $3 == "any" && $5 == "any" && $6 == "always" { print $1 }' | tail -n 1)
ask token revoke "$id" || die 'token revoke'
ask token revoke 00000000 2>revoke.err && die 'a token that no operator made was revoked'
grep -q 'no such token' revoke.err || die "revoke: $(cat revoke.err)"
with short late
with gone revoked
with bound b
refused late 3 'token [0-9a-f]{8} has expired'
refused revoked 3 'token [0-9a-f]{8} is revoked'
refused b 3 'token [0-9a-f]{8} is for host a2 alone; join with --name a2'
with once first
await_round 2
with once second
refused second 3 'token [0-9a-f]{8} is used up, as it is good for 1 hosts'
# the host that has used it comes back with it
join_leave first
await_round 1
join_left first
with once first
await_round 2
with bound a2
await_round 3
for name in late revoked b second; do
  [ "$(grep -c "$name: this host may not join" "$err")" = 1 ] || die "the driver does not say once that $name may not join"
done

# the name of a host that lives; when that one has left, the name is free
first_a=${joined[a]}
join_host a '' "$place" --join-timeout 60s
await join-a.log 'the name a is that of a living host'
pid=${first_a}
kill -TERM "$pid"
await join-a.log 'host a has joined the job' 2
await_round 3
refused wrong 1 'the token is wrong, or that driver is one of another job'
grep -qE '127\.0\.0\.1:[0-9]+: turned away, the peer has another key: .*its token is unknown to this job.*hvd-elastic token create' "$err" ||
  die 'the driver does not say that a host has an unknown token, and what to do'

# a process that dials again is the same host; another one of its name is refused; a second JOIN on one connection is a
# fault, which ends that connection
"$joiners" twice "$place" token twin >twice.out || die "joiners: $(cat twice.out)"
[ "$(cut -d : -f 1,2 twice.out | sed 's/, code.*//' | sort | uniq -c | tr -s ' \n' ' ')" = \
  ' 1 connection 1 is closed: the other side closed the connection 1 connection 1 is welcomed'\
' 1 connection 2 is closed: the other side closed the connection 1 connection 2 is welcomed'\
' 1 connection 3 is closed: the other side closed the connection 1 twin: refused ' ] || die "twice: $(cat twice.out)"
grep -q 'twin: refused, code -[0-9]*: the name twin is that of a living host of the job; give each' twice.out ||
  die "twice: $(cat twice.out)"
grep -q 'JOIN.*the connection to this agent is closed' "$err" || die 'the driver does not say that a JOIN came twice'

# a host that has joined before its token expires
ask token create --lifetime 10s >brief || die 'token create --lifetime'
with brief stays
await join-stays.log 'host stays has joined the job'

# another major version, on either side
"$joiners" major "$place" token newer >major.out || die "joiners: $(cat major.out)"
grep -q 'newer: refused, code -[0-9]*: the other side speaks protocol 2, and this program speaks protocol 1; install' major.out ||
  die "another version: $(cat major.out)"
[ "$(grep -c 'an agent is refused: the other side speaks protocol 2, and this program speaks protocol 1; install' "$err")" = 1 ] ||
  die 'the driver does not say that an agent has another version'
BODY_TEST=$folder "$joiners" driver 127.0.0.1 token >driver.out 2>&1 &
newer=$!
await driver.out '^listens at'
join_host old '' "$(sed -n 's/^listens at //p' driver.out)"
refused old 3 'the driver at .* does not let this host join: the other side speaks protocol 2'
kill $newer

# the secret of a token is nowhere# the secret of a token is nowhere in the job's store or log
for secret in "$(cat token)" "$(cat once)"; do
  if grep -rqF "$secret" "$state" "$err"; then die 'a token was written down'; fi
done

# the next driver knows the tokens, how often they were used, and which hosts have joined with one that has expired
has_expired() { ask token list | awk '$2 == "expired"' | grep -c . | grep -qx 2; }
await_true 'the token of the host stays has expired' has_expired
kill_driver
rm token
start -np 1 --max-np 4 --discovery join --token-file token --port $port --listen 127.0.0.1 --beat 200ms --lease 5s \
  --resume "$job" "$trainer" --say "$say"
await "$err" 'the driver listens for agents at' 2
await_after "$err" 'is taken over' 1 'a2: (the|an) agent of this host (is back|says hello) with 1 workers'
await join-stays.log 'host stays has joined the job' 2
with brief later
refused later 3 'token [0-9a-f]{8} has expired'
ask token list >tokens.now || die 'token list'
grep -q 'used up' tokens.now || die "the use of a token was forgotten: $(cat tokens.now)"
grep -q revoked tokens.now || die "a revoked token was forgotten: $(cat tokens.now)"
ask stop || die 'stop'
await_driver
for name in a a2 first stays; do join_left $name; done
nothing_left
