#!/usr/bin/env bash
# Uses that no manual describes: streams that are closed or not read, a job that is
# stopped before it stands, its name used again at once, two drivers that each want it.
#
#     hostile.sh ELASTIC TRAINER [CASE...]
. "$(dirname "$0")/../shell/lib.sh"
test_begin "$@"
shift 2

# The output of workers, and the log, must not end up in a file that is opened next.
closed_streams() {
  local how
  for how in '<&-' '>&-' '2>&-' '>&- 2>&-' '<&- >&- 2>&-'; do
    # shellcheck disable=SC2016 # the worker's shell is to see it
    (
      eval "exec $how"
      BODY_TEST=$folder timeout "$PATIENCE" "$elastic" --job "$job" --state-dir "$state" -np 2 \
        -H 127.0.0.1:2 sh -c 'echo printed; echo complained >&2; sleep 0.1'
    ) >"$out" 2>"$err" || die "$how: exit code $?"
    ! grep -rqaE 'printed|complained|info' "$state/lock" "$state/job.db" ||
      die "$how: what was printed is in the state"
    nothing_left
    new_job
  done
}

# No process reads the driver's messages, and the pipe is full: it goes on all the same.
blocked_stderr() {
  local pipe reader
  mkfifo full
  exec {pipe}<>full
  dd if=/dev/zero of=full bs=4096 count=1000 oflag=nonblock status=none 2>/dev/null
  BODY_TEST=$folder "$elastic" --job "$job" --state-dir "$state" --log-level debug -np 2 \
    -H 127.0.0.1:2 "$trainer" --say "$say" >/dev/null 2>full </dev/null {pipe}>&- &
  driver=$!
  await_round 2
  ask status >/dev/null || die 'a driver whose log nobody reads does not answer'
  head -c 8192 <&"$pipe" >/dev/null # there is room again, before the driver says its last words
  exec {reader}<full # before the other end is closed here: a pipe has a reader at each moment
  cat <&"$reader" >"$out" {pipe}>&- &
  exec {pipe}<&- {reader}<&-
  stop_hearing # nobody else holds the pipe open: cat ends when the driver does
  ask stop --no-wait || die 'stop'
  await_driver
  wait $!
  [ "$code" = 143 ] || die "the driver's exit code is $code"
  grep -qa 'lines of the log are missing here' "$out" || die 'lines are missing, and it is not said'
  nothing_left
}

# Nor what 20 workers print, on both streams in turn: some of it waits for a while, no more.
blocked_stdout() {
  local pipe began
  mkfifo stuck
  exec {pipe}<>stuck
  BODY_TEST=$folder "$elastic" --job "$job" --state-dir "$state" --output-filename prints -np 20 \
    -H 127.0.0.1:20 "$trainer" --steps 100 --print 4000 --say "$say" >stuck 2>"$err" \
    </dev/null {pipe}>&- &
  driver=$!
  await "$err" 'the job is over'
  began=$EPOCHREALTIME
  await_driver
  exec {pipe}<&-
  [ "$code" = 0 ] || die "the driver's exit code is $code"
  say_line "blocked_stdout: $(((${EPOCHREALTIME/[.,]/} - ${began/[.,]/}) / 1000)) ms for the last words"
  nothing_left
}

# A job is stopped before it stands, and its name is used again at once; then one whose state was
# thrown away while its agent and its workers still wait for its driver.
name_again() {
  local i agent
  for i in 1 2 3 4 5; do
    start -np 4 -H 127.0.0.1:2,127.0.0.2:2 "$trainer" --boot-ms 60000
    await "$err" 'listens for agents at' $i
    kill -TERM "$driver"
    await_driver
    [ "$code" = 143 ] || die "stopped early: exit code $code"
  done
  start -np 4 -H 127.0.0.1:2,127.0.0.2:2 "$trainer" --steps 5
  finish 0

  new_job
  start -np 2 -H 127.0.0.1:2 "$trainer" --say "$say"
  await_round 2
  find_agent 127.0.0.1
  kill_driver
  rm -r "$state"
  start -np 2 -H 127.0.0.1:2 --elastic-timeout 15s true
  await_driver
  [ "$code" = 3 ] || die "a name that is in use: exit code $code"
  grep -q "works for another job of the name $job.* kill -INT $agent" "$err" || die 'it is not said why'
  kill -INT "$agent" # two SIGTERM in a row may be one
  nothing_left
}

# Supervisor and agent die at once. The workers die with their agent; only the next agent
# knows of the processes that they had started.
both_killed() {
  local agent worker left
  # shellcheck disable=SC2016 # the worker's shell is to see it
  start -np 2 -H 127.0.0.1:2 sh -c 'sleep 1000 & setsid sleep 1000 & echo up; wait'
  await "$out" 'up' 2
  worker=$(marked HVD_INCARNATION=1 | head -n 1)
  while [ "$(cat "/proc/$(parent "$worker")/comm")" != hvd-agent ]; do worker=$(parent "$worker"); done
  agent=$(parent "$worker")
  left=$(marked HVD_INCARNATION=)
  kill -KILL "$(parent "$agent")" "$agent"
  await "$out" 'up' 4
  for worker in $left; do await_end "$worker" || die "$worker is left of the former agent"; done
  ask stop || die 'stop'
  finish 143
}

# The program goes while it runs: who is started then cannot, and that is the reason that is given.
program_removed() {
  local pid
  cp "$trainer" ./mine
  start -np 2 -H 127.0.0.1:2 ./mine --say "$say"
  await_round 2
  rm mine
  for pid in $(marked HVD_INCARNATION=); do
    kill -KILL "$pid"
    break
  done
  finish 1
  grep -q '^hvd-elastic: .*has failed 4 times without a newer commit.*\./mine: no such program' "$err" || die 'the reason is not given'
}

cases=(program_removed both_killed name_again closed_streams blocked_stderr blocked_stdout)
[ $# = 0 ] || cases=("$@")
for case_now in "${cases[@]}"; do
  new_job
  "$case_now"
done
