#!/usr/bin/env bash
# Rare cases, one after the other: drivers that sleep, jobs without a driver, processes
# that are silent, hang, or say goodbye.
#
#     hard_cases.sh ELASTIC TRAINER [CASE...]
. "$(dirname "$0")/../shell/lib.sh"
test_begin "$@"
shift 2

stop() {
  ask stop || die "stop: exit code $?"
  finish 143
}

# An old driver wakes up beside its successor: it obeys, and no agent obeys it.
driver_sleeps() {
  local first before
  start -np 2 -H 127.0.0.1:2 "$trainer" --say "$say"
  await_round 2
  before=$(workers)
  first=$driver
  kill -STOP "$first"
  start --takeover -np 2 -H 127.0.0.1:2 "$trainer" --say "$say"
  await "$err" '(is back|says hello) with 2 workers'
  kill -CONT "$first"
  await_end "$first" || die 'a driver that was replaced drives on'
  wait "$first"
  code=$?
  [ "$code" = 5 ] || die "the exit code of a driver that was replaced is $code, not 5"
  [ "$(workers)" = "$before" ] || die 'workers were started anew'
  is_alive "$driver" || die 'the new driver has ended'
  stop
}

# A driver beside which stands what starts agents as a slow ssh does: but for the first host, not
# before $folder/now is there.
slow_driver() {
  mkdir "$folder/slow"
  mkfifo "$folder/never"
  cp "$elastic" "$folder/slow/hvd-elastic"
  cat >"$folder/slow/hvd-agent" <<EOF
#!/bin/sh
said=\$(cat)
case \$said in
  *'host = "127.0.0.1"'*) ;;
  *) [ -e "$folder/now" ] || read -r nothing <"$folder/never" ;;
esac
exec "$(realpath "${elastic%/*}/../agent/hvd-agent")" --stdin <<END
\$said
END
EOF
  chmod +x "$folder/slow/hvd-agent"
}

# The old one keeps its port, and it takes long until all agents have been told the new one. As all
# train on, no host is counted as dead.
told_late() {
  local first before options
  options=(-np 3 -H '127.0.0.1:1,127.0.0.2:1,127.0.0.3:1')
  start "${options[@]}" "$trainer" --say "$say"
  await_round 3
  before=$(workers)
  first=$driver
  kill -STOP "$first"
  slow_driver
  elastic=$folder/slow/hvd-elastic start --takeover "${options[@]}" --agent-timeout 3s "$trainer" \
    --say "$say"
  await "$err" '127.0.0.[23]: the agent of this host has not connected to this driver yet' 2
  : >"$folder/now"
  await "$err" 'round 1: all 3 train' 2
  kill -CONT "$first"
  await_end "$first" || die 'a driver that was replaced drives on'
  [ "$(workers)" = "$before" ] || die 'workers were started anew'
  if grep -q 'counted as dead\|is revoked' "$err"; then die 'their round was revoked'; fi
  stop
}

# No driver takes over: agents and workers end by themselves.
driver_never_comes_back() {
  # the first driver has to come within that time too
  start -np 2 -H 127.0.0.1:1,127.0.0.2:1 --driver-grace 10s "$trainer" --say "$say"
  await_round 2
  kill_driver
  for pid in $(workers); do await_end "$pid" || die 'a worker without a driver lives on'; done
  rm -f "$state/control"
  nothing_left
}

# A reader that goes away, and one that never was.
driver_is_not_read() {
  start -np 2 -H 127.0.0.1:2 "$trainer" --steps 40 --print 5000
  finish 0
  new_job
  mkfifo "$folder/pipe"
  exec {reader}<>"$folder/pipe"
  out=$folder/pipe
  start -np 2 --min-np 1 -H 127.0.0.1:2 "$trainer" --print 100 --say "$say"
  await_round 2
  exec {reader}<&- # the next line of the driver is an EPIPE
  kill -KILL "$(workers | head -n 1)"
  await_round 2
  stop
  rm "$folder/pipe"
}

# The driver and an agent die in the same moment; then all of them, and with them what was committed.
all_die() {
  local pids
  begin() {
    start -np 4 --min-np 2 -H 127.0.0.1:2,127.0.0.2:2 "$@" "$trainer" --say "$say"
  }
  begin
  await_round 4
  find_agent 127.0.0.2
  kill -KILL "$driver" "$agent"
  await_driver
  begin
  await_round 4

  kill -KILL "$driver"
  await_driver
  mapfile -t pids < <(marked)
  kill -KILL "${pids[@]}" 2>/dev/null # an agent may end with its supervisor, before its turn
  [ "${#pids[@]}" -ge 8 ] || die "only ${#pids[@]} processes were there"
  begin --elastic-timeout 30s # the agents have to be there by then, and to say that they have nothing
  finish 1
  grep -q 'is held by no connected worker or agent' "$err" || die 'it is not said what is lost'
}

supervisor_dies() {
  local pids supervisor pid
  start -np 4 --min-np 2 -H 127.0.0.1:2,127.0.0.2:2 "$trainer" --say "$say"
  await_round 4
  mapfile -t pids < <(workers HVD_HOST=127.0.0.2)
  find_agent 127.0.0.2
  supervisor=$(parent "$agent")
  kill -KILL "$supervisor"
  for pid in "${pids[@]}" "$agent"; do await_end "$pid" || die "$pid outlives its supervisor"; done
  await_round 4
  stop
}

# The machine will be taken away: its workers leave in order, nothing is rolled back, no slot is blamed.
notice() {
  start -np 4 --min-np 2 -H 127.0.0.1:2,127.0.0.2:2 "$trainer" --say "$say"
  await_round 4
  find_agent 127.0.0.2
  kill -TERM "$agent"
  await_round 2
  if grep -qE 'is revoked|failed' "$err"; then die 'a notice was taken for a failure'; fi
  stop
}

worker_is_silent() {
  start -np 2 --min-np 1 -H 127.0.0.1:2 --beat 100ms --lease 2s "$trainer" --freeze-at 10 \
    --once "$folder/$job.once" --say "$say"
  await_round 2
  await_round 2
  stop
}

# A loop that computes for ever holds up the next round until --stall-shutdown; the third worker has
# what was committed.
worker_hangs() {
  local pid
  start -np 3 --min-np 1 -H 127.0.0.1:3 --stall-shutdown 8s "$trainer" --hang-at 10 --rank 1 \
    --once "$folder/$job.once" --say "$say"
  await_round 3
  await "$out" 'hangs'
  for pid in $(workers); do [ "$(variable "$pid" HVD_RANK)" != 0 ] || kill -KILL "$pid"; done
  await "$err" 'did not stop for the recovery'
  await_round 3
  stop
}

# To end with 0 in the middle of a round is a failure; so is any other code.
worker_goes_home() {
  local status
  for status in 0 3; do
    start -np 2 --min-np 1 -H 127.0.0.1:2 "$trainer" --exit-at 10 --exit-code $status \
      --once "$folder/$job.once" --say "$say"
    await_round 2
    await_round 2
    await "$state/events.log" 'failed' # not with 0 either, without FINISHED
    stop
    new_job
  done
}

cases=${*:-driver_sleeps told_late driver_never_comes_back driver_is_not_read all_die supervisor_dies notice
  worker_is_silent worker_hangs worker_goes_home}
for case_now in $cases; do
  say_line "$case_now"
  "$case_now"
  new_job
done
