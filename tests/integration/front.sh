#!/usr/bin/env bash
# The process in front of the driver: the driver dies and the next one is there, also after the end of the
# job; signals count once; the terminal is closed; --detach.
#
#     front.sh ELASTIC TRAINER
. "$(dirname "$0")/../shell/lib.sh"
test_begin "$@"
unset HVD_RESTART
export XDG_STATE_HOME=$folder/states
mkdir "$XDG_STATE_HOME"

# The driver is the one child of the process that `start` has started. In $child.
find_child() {
  child=$(pgrep -P "$driver")
  [ -n "$child" ] || die "the process $driver has no child"
}

# ---- the driver dies, in a job whose folder has an automatic name, with a variable that no file has --------

TOKEN=t0ken BODY_TEST=$folder "$elastic" -np 3 --min-np 2 -H 127.0.0.1:2,127.0.0.2:1 --blacklist-cooldown-range 0 0 \
  --kill-grace 2s --gather 1s --env-secret TOKEN "$trainer" --step-ms 5 --say "$say" >>"$out" 2>>"$err" </dev/null &
driver=$!
await_round 3
state=$(echo "$XDG_STATE_HOME"/hvd-elastic/*)
before=$(workers)
find_child
first=$child
kill -KILL "$child" "$(workers | head -n 1)"
await_round 3
find_child
[ "$child" != "$first" ] || die 'the driver is the same'
grep -qE "the driver \(pid $first\) died of signal 9 .*; a new driver takes the job over \(pid $child\)" "$err" ||
  die 'the log does not say which driver died'
await "$state/events.log" "a new driver takes the job over \\(pid $child\\)"
kept=$(comm -12 <(sort <<<"$before") <(workers | sort) | wc -l)
[ "$kept" = 2 ] || die "$kept workers are still the same, not 2"
for worker in $(workers); do
  [ "$(variable "$worker" TOKEN)" = t0ken ] || die "the worker $worker lacks TOKEN"
done

# another signal, and then SIGTERM to both processes: it counts once
kill -ABRT "$child"
await_after "$err" 'died of signal 6' 1 'round [0-9]+: all 3 train'
find_child
kill -TERM "$driver" "$child"
await_driver
[ "$code" = 143 ] || die "SIGTERM: exit code $code, not 143"
grep -q 'a second stop' "$state/events.log" && die 'SIGTERM to driver and parent counts twice'
state=$folder nothing_left

# ---- the parent dies: the driver goes on ------------------------------------------------------------------

new_job
start -np 2 -H 127.0.0.1:2 "$trainer" --step-ms 5 --say "$say"
await_round 2
find_child
kill_driver
await "$state/events.log" 'the process that has started this driver is gone; the driver goes on'
kill -KILL "$(workers | head -n 1)"
await_round 2
ask stop || die "stop of a driver without a parent: exit code $?"
nothing_left

# ---- nohup ------------------------------------------------------------------------------------------------

new_job
trap '' HUP
start -np 1 "$trainer" --step-ms 5 --say "$say"
trap - HUP
await_round 1
find_child
kill -HUP "$driver" "$child"
kill -USR1 "$driver"
kill -TERM "$driver" # it is read after the others
await_driver
[ "$code" = 143 ] || die "SIGHUP under nohup: exit code $code"
! grep -q 'the terminal is gone' "$state/events.log" || die 'SIGHUP under nohup is not ignored'
nothing_left

# ---- a terminal: Ctrl-C after the driver has died; a terminal that is closed --------------------------------

# on_terminal WORDS...: as start.
on_terminal() {
  rm -f keys
  mkfifo keys
  BODY_TEST=$folder "$(dirname "$script")/../shell/terminal.py" "$err" keys "$elastic" --job "$job" \
    --state-dir "$state" --blacklist-cooldown-range 0 0 --kill-grace 2s --gather 1s "$@" &
  helper=$!
  await "$err" 'all [0-9]+ train'
  driver=$(parent "$(cat "$state/lock")")
  find_child
}
end_of_helper() {
  await_end "$helper" || die 'the command on the terminal does not end'
  wait "$helper"
  code=$?
}

new_job
on_terminal -np 2 "$trainer" --step-ms 5 --say "$say"
kill -KILL "$child"
await_after "$err" 'died of signal 9' 1 'all 2 train'
echo ctrl-c >keys
end_of_helper
[ "$code" = 130 ] || die "Ctrl-C: exit code $code, not 130"
grep -q 'a second stop' "$state/events.log" && die 'Ctrl-C counts twice'
nothing_left

new_job
on_terminal -np 2 -H 127.0.0.1:2 --output-filename prints "$trainer" --step-ms 5 --print 100 --say "$say"
await_round 2
echo close >keys
await "$state/events.log" "the terminal is gone, and the job goes on .* hvd-elastic status --state-dir $state"
ask status >answer || die "status: exit code $?"
find_child
kill -KILL "$child" "$(workers | head -n 1)"
await_round 2
# The worker that was started last prints: its file is new.
last=$(tail -n 1 "$say" | cut -d ' ' -f 1)
has_printed() { [ -s "$(echo prints/127.0.0.1/*/"$last.out")" ]; }
await_true "a file with what worker $last prints" has_printed
ask stop || die "stop without a terminal: exit code $?"
end_of_helper
[ "$code" = 143 ] || die "without a terminal: exit code $code, not 143"
nothing_left

# The terminal goes without a signal, as for a program that ignores it: no write ends or blocks the driver.
new_job
trap '' HUP
on_terminal -np 2 -H 127.0.0.1:2 "$trainer" --step-ms 5 --print 1000 --say "$say"
trap - HUP
await_round 2
echo close >keys
kill -KILL "$(workers | head -n 1)"
await_round 2
kill -KILL "$child" "$(workers | head -n 1)"
await_round 2
ask stop || die "stop with a dead terminal: exit code $?"
end_of_helper
[ "$code" = 143 ] || die "with a dead terminal: exit code $code, not 143"
! grep -q 'the terminal is gone' "$state/events.log" || die 'SIGHUP is not ignored'
nothing_left

# without a parent
new_job
HVD_RESTART=false start -np 1 "$trainer" --step-ms 5 --say "$say"
await_round 1
! pgrep -P "$driver" -x hvd-elastic || die 'with HVD_RESTART=false there is a parent'
kill -HUP "$driver"
await "$state/events.log" 'the terminal is gone'
ask stop || die "stop after SIGHUP: exit code $?"
await_driver
[ "$code" = 143 ] || die "after SIGHUP: exit code $code, not 143"
nothing_left

# ---- the driver dies after it has recorded the end of the job ---------------------------------------------

# Its output waits for a reader, so it is still there when the end is recorded.
new_job
mkfifo slow
exec {slow}<>slow
BODY_TEST=$folder "$elastic" --job "$job" --state-dir "$state" -np 1 "$trainer" --steps 50 --print 4000 >slow 2>>"$err" &
driver=$!
await "$err" 'the job is over: finished'
end_is_recorded() {
  is_alive "$driver" || die 'the driver has ended, and has not recorded the end'
  [ "$(sqlite3 -readonly "$state/job.db" 'SELECT ended FROM fact')" = 1 ]
}
await_true 'the end in the journal' end_is_recorded
kill -KILL "$(cat "$state/lock")"
await_driver
[ "$code" = 0 ] || die "the driver died after the end of the job: exit code $code, not 0"
tail -n 1 "$err" | grep -qE "^hvd-elastic: job $job: finished \\((after [^ ]+, )?exit code 0\\)" ||
  die 'the end of the job is not told'
exec {slow}<&-
nothing_left

# ---- --detach ---------------------------------------------------------------------------------------------

new_job
code=0
start --detach -np 2 --hostfile none.txt "$trainer"
await_driver
[ "$code" = 2 ] || die "--detach and a host file that is missing: exit code $code, not 2"
grep -q 'none.txt' "$err" || die '--detach does not say what failed'

# Its output is read to the end, as by $(...): no process of the job keeps it open.
shown=$(BODY_TEST=$folder "$elastic" --detach -np 2 --gather 1s "$trainer" --step-ms 5 --say "$say" 2>>"$err") ||
  die "--detach: exit code $?"
state=$XDG_STATE_HOME/hvd-elastic/$shown
[ -d "$state" ] || die "--detach: '$shown' is no job"
grep -q "job $shown goes on in the background; look at it with: hvd-elastic status $shown" "$err" ||
  die '--detach does not say how to look at the job'
await_round 2
child=$(cat "$state/lock")
driver=$(parent "$child")
kill -KILL "$child"
await "$state/events.log" "the driver \\(pid $child\\) died of signal 9"
await_after "$state/events.log" 'died of signal 9' 1 'all 2 train'
ask stop || die "stop after --detach: exit code $?"
await_end "$driver" || die 'the parent of a driver that has ended does not end'
state=$folder nothing_left
say_line 'ok'
