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

refuses 2 'list: did you mean jobs\?' list
refuses 2 'drain: --follow is for events, status' drain -f 127.0.0.1
HVD_TRACEABLE=1 "$elastic" --job nosuch status >answer 2>&1 && die 'options before the verb: no such job, and code 0'
grep -q 'nosuch' answer || die "options before the verb: $(cat answer)"
[ "$("$elastic" --json --state-dir "$folder" jobs)" = "$("$elastic" jobs --json --state-dir "$folder")" ] ||
  die 'options before the verb: another answer than behind it'
refuses 2 'statsu: did you mean status\?' statsu
"$elastic" help >answer || die 'help'
grep -q 'usage: hvd-elastic \[options\]' answer || die "help: $(cat answer)"
for verb in page token checkpoint; do grep -qE "[ |] $verb( |\$)" answer || die "help lacks $verb: $(cat answer)"; done
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
# status -f answers again and again, and ends with the job, too
ask status -f >repeated 2>&1 &
repeater=$!
await repeated ': running' 3

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

# each event says as data what its text says; the job's file tells the same when the driver is gone
ask events --json >told || die 'events --json'
python3 - >wrong 2>&1 <<'PY' || die "events --json: $(cat wrong)"
import json
events = [json.loads(line) for line in open("told")]
def one(kind, **facts):
    found = [e for e in events if e.get("kind") == kind and all(e.get(k) == v for k, v in facts.items())]
    assert found, (kind, facts, [e for e in events if e.get("kind") == kind])
    return found[0]
for event in events:
    assert event["severity"] in ("error", "warning", "info", "debug") and event["job"] and "kind" in event, event
one("round_begun", round=1, cause="first", size=4)
assert one("round_trains", round=1)["rebuild_us"] >= 0
one("drain_begun", host="127.0.0.2", slot=1, size=1)
one("drain_ended", host="127.0.0.2", slot=1, cause="an operator")
assert "slot" not in one("drain_begun", host="127.0.0.2", left_us=30000000)
failed = one("worker_failed", host="127.0.0.1", severity="warning")
assert "SIGKILL" in failed["cause"] and failed["slot"] in (0, 1) and failed["incarnation"] > 0, failed
one("round_revoked", incarnation=failed["incarnation"], round=failed["round"])
assert one("failure_counted", host="127.0.0.1", slot=failed["slot"])["left_us"] > 3e9
recovered = one("round_trains", cause="recovery")
assert f'round {recovered["round"]}: all {recovered["size"]} train' in recovered["text"], recovered
assert recovered["pause_us"] > recovered["agree_us"] > 0, recovered
PY

await_round_before=$round
shows '' stop
finish 143
await_end "$follower" || die 'events -f does not end with the job'
await_end "$repeater" || die 'status -f does not end with the job'
grep -q "round $await_round_before" follow || die 'events -f has not seen the last round'
refuses 1 '' status
ask events --json >kept 2>kept.err || die "events --json without a driver: $(cat kept.err)"
head -n "$(wc -l <told)" kept | cmp - told || die 'events --json: events.log tells other events than the driver'
grep -q '"kind":"job_over".*"outcome":"stopped"' kept || die "no verdict: $(tail -n 5 kept)"
say_line "status, hosts, events, drain, undrain, blacklist, stop: as they should be"
