#!/usr/bin/env bash
# Metadata services that hang, lie, answer late, redirect, or are of another time: none of it is taken for a notice, no agent
# waits for it, and a real notice that follows is honoured. An agent asks no service of a cloud in which it is not.
#
#     notice_faults.sh ELASTIC TRAINER FAULT...
. "$(dirname "$0")/../shell/lib.sh"
. "$(dirname "$0")/../shell/metadata.sh"
faults=("${@:3}")
test_begin "$1" "$2"
metadata_start
metadata_agents
host=127.0.0.2

begin() { # PREEMPTION
  new_job
  metadata clear "host=$host" >/dev/null
  start -np 2 --min-np 1 -H 127.0.0.1:1,127.0.0.2:1 --beat 200ms --lease 20s --preemption "$1" \
    "$trainer" --step-ms 5 --say "$say"
  await_round 2
  agent_log=$state/agents/$host.log
}
counted() { [ "$(metadata_count "$host" "$1")" -ge "$2" ]; } # NAME COUNT
# asked COUNT: until the service of the host was asked so often again.
asked() { await_true "$1 more requests to the service of $host" counted requests $(($(metadata_count "$host" requests) + $1)); }
over() {
  ask stop >/dev/null || die "stop: exit code $?"
  await_driver
  nothing_left
}
no_notice() {
  if grep -E 'is drained|honoured' "$err"; then die "$1 was taken for a notice"; fi
}

# Each fault comes while the job trains, with every cloud's way of asking, and goes again.
for fault in "${faults[@]}"; do
  for cloud in aws gcp azure; do
    metadata fault "host=$host" kind=none >/dev/null
    begin "$cloud"
    asked 3
    metadata fault "host=$host" "kind=$fault" >/dev/null
    asked 1 # a request that was under way before may have a good answer
    [ "$fault" = hang ] || [ "$fault" = slow ] || asked 1
    metadata notice "host=$host" "cloud=$cloud" in=120 >/dev/null
    if [ "$fault" != hang ] && [ "$fault" != slow ]; then
      asked 4
      no_notice "$fault of $cloud"
      await "$agent_log" 'was asked whether this machine will go away, and gave no usable answer'
    fi
    metadata fault "host=$host" kind=none >/dev/null
    await "$err" "$host: the notice is honoured"
    over
  done
done

# A moment that is just past means now; one that is long past means nothing. The clock of the service may be wrong.
begin aws
asked 3
metadata notice "host=$host" cloud=aws in=-3600 >/dev/null
await "$agent_log" 'long past'
no_notice 'a notice for a moment an hour ago'
metadata notice "host=$host" cloud=aws in=-30 >/dev/null
await "$err" "$host: the notice is honoured: lead [45]"
over
begin aws
metadata skew "host=$host" s=86400 >/dev/null
metadata notice "host=$host" cloud=aws in=120 >/dev/null
await "$err" "$host: the notice is honoured: lead 1m5[0-9]"
metadata skew "host=$host" s=0 >/dev/null
over

# A notice that is withdrawn is named; events of other machines, and those that a machine survives, are not taken.
begin aws
metadata notice "host=$host" cloud=aws kind=rebalance >/dev/null
await "$err" "$host: the notice, which had no deadline, is honoured"
metadata clear "host=$host" >/dev/null
await "$agent_log" 'the notice is withdrawn'
over
begin azure
asked 2
acknowledged=$(metadata_count "$host" acknowledged)
for kind in other Freeze; do
  metadata notice "host=$host" cloud=azure in=120 "kind=$kind" >/dev/null
  asked 3
  no_notice "an event of Azure, $kind,"
done
[ "$(metadata_count "$host" acknowledged)" = "$acknowledged" ] || die 'a foreign event was acknowledged'
metadata notice "host=$host" cloud=azure in=120 kind=Terminate >/dev/null
await "$err" "$host: the notice is honoured"
await_true "the acknowledgement of $host" counted acknowledged $((acknowledged + 1))
over

# auto asks no service on a machine that is in no cloud, and only its own cloud on one that is.
mkdir "$folder/dmi"
before=$(metadata counts "host=$host")
begin auto
over
[ "$(metadata counts "host=$host")" = "$before" ] || die 'an agent has asked where no cloud is'
echo 'Google Compute Engine' >"$folder/dmi/product_name"
begin auto
asked 2
metadata notice "host=$host" cloud=gcp >/dev/null
await "$err" "$host: the notice is honoured: lead (2[0-9]|30)(\.[0-9]+)?s"
over

# bad values are refused before the job begins
for bad in aws,moon file: file:relative command: ''; do
  if BODY_TEST=$folder "$elastic" -np 1 --preemption "$bad" true >"$folder/refused" 2>&1; then die "--preemption '$bad' is taken"; fi
  grep -q 'preemption' "$folder/refused" || die "--preemption '$bad': $(cat "$folder/refused")"
done
# what only the host can know: its agent does not start, and the driver names host, culprit and remedy
new_job
start -np 1 -H 127.0.0.2:1 --preemption "file:$folder/nowhere/going" "$trainer"
await "$err" "127.0.0.2: .*--preemption: file:$folder/nowhere/going: this host has no folder $folder/nowhere; make it"
over
for name in denied strayed; do
  [ "$(metadata_count "$host" $name)" = 0 ] || die "$name: $(metadata counts "host=$host")"
done
say_line "${#faults[@]} faults of three clouds, and moments of other times: no false notice, no missed one"
