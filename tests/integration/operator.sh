#!/usr/bin/env bash
# Questions and orders of an operator: status, hosts, events, drain, undrain, blacklist, stop; as tables
# and as JSON.
#
#     operator.sh ELASTIC TRAINER
. "$(dirname "$0")/../shell/lib.sh"
test_begin "$@"

# shows TEXT VERB WORDS...: exit 0, and TEXT is in what it prints.
shows() {
  local text=$1
  shift
  ask "$@" >answer 2>&1 || die "$*: exit code $?: $(cat answer)"
  grep -qE -- "$text" answer || die "$*: no '$text' in: $(cat answer)"
}

# json VERB WORDS...: valid, and one document.
json() {
  ask "$@" --json >answer 2>answer.err || die "$* --json: exit code $?: $(cat answer.err)"
  python3 -m json.tool answer >pretty 2>answer.err || die "$* --json: $(cat answer.err answer)"
}

# refuses CODE TEXT VERB WORDS...
refuses() {
  local want=$1 text=$2 code=0
  shift 2
  ask "$@" >answer 2>&1 || code=$?
  [ "$code" = "$want" ] || die "$*: exit code $code, not $want: $(cat answer)"
  grep -qE -- "$text" answer || die "$*: no '$text' in: $(cat answer)"
}

refuses 2 'statsu: did you mean status\?' statsu
"$elastic" help >answer || die 'help'
grep -q 'usage: hvd-elastic \[options\]' answer || die "help: $(cat answer)"
"$elastic" help drain >answer || die 'help drain'
grep -q 'usage: hvd-elastic drain' answer || die "help drain: $(cat answer)"

mkdir "$state"
refuses 1 'no job' status
rmdir "$state"
refuses 1 '' status

start -np 4 --min-np 1 --max-np 5 -H 127.0.0.1:2,127.0.0.2:2,no-such-host.invalid:1 \
  --blacklist-cooldown-range 1h 1h "$trainer" --say "$say"
await_round 4

shows "$job" status
shows 'round *:? *1|round 1' status
json status
shows '127\.0\.0\.2' hosts
shows 'no-such-host\.invalid' hosts
json hosts
shows 'round 1' events
ask events --json >answer || die 'events --json'
while read -r line; do
  python3 -m json.tool <<<"$line" >/dev/null || die "events --json: $line"
done <answer
[ -s answer ] || die 'events --json: nothing'

# events -f sees what happens from now on, and ends with the job
ask events -f >follow 2>&1 &
follower=$!

shows '' drain 127.0.0.2:1
await_round 3
shows 'drain' hosts
shows '' undrain 127.0.0.2:1
await_round 4
shows '' drain 127.0.0.2 --deadline 30s
await_round 2
for pid in $(workers HVD_HOST=127.0.0.2); do # they have left, and may not have ended yet
  await_end "$pid" || die 'workers run on a host that is drained'
done
shows '' undrain 127.0.0.2
await_round 4

# a failure bars the slot until it is cleared
kill -KILL "$(workers HVD_HOST=127.0.0.1 | head -n 1)"
await_round 3
shows '127\.0\.0\.1' blacklist
json blacklist
shows '' blacklist clear 127.0.0.1
await_round 4

refuses 1 'nowhere' drain nowhere
refuses 2 '' drain
refuses 2 '' drain 127.0.0.1 --deadline soon
refuses 2 '' status --no-such-option
is_alive "$driver" || die 'the driver has ended'

await_round_before=$round
shows '' stop
finish 143
await_end "$follower" || die 'events -f does not end with the job'
grep -q "round $await_round_before" follow || die 'events -f has not seen the last round'
refuses 1 '' status
say_line "status, hosts, events, drain, undrain, blacklist, stop: as they should be"
