#!/usr/bin/env bash
# "hvd-elastic top" on a real terminal: its picture of a job that loses a worker, its keys, its end, and how it leaves
# the terminal. Without a terminal it refuses.
#
#     top.sh ELASTIC TRAINER
. "$(dirname "$0")/../shell/lib.sh"
test_begin "$@"

# look NAME: begins a viewer on a terminal of 80 columns and 24 lines; its screen goes to the file NAME.
look() {
  rm -f keys "$1"
  mkfifo keys
  BODY_TEST=$folder LC_ALL=C.UTF-8 "$(dirname "$script")/../shell/terminal.py" "$1" keys "$elastic" top "$job" --state-dir "$state" &
  viewer=$!
  exec 7>keys
  echo 'size=80x24' >&7
}
press() { echo "$*" >&7; }
# ends CODE: the viewer ends with this code, and has given the terminal back.
ends() {
  local code=0
  await_end "$viewer" || die 'the viewer does not end'
  wait "$viewer" || code=$?
  [ "$code" = "$1" ] || die "the viewer ends with $code, not $1"
  exec 7>&-
}
gives_back() {
  tail -c 40 "$1" | grep -q $'\e\[?25h\e\[?1049l' || die "the terminal is not given back: $(tail -c 200 "$1" | cat -v)"
}

start -np 4 --min-np 1 -H 127.0.0.1:2,127.0.0.2:2 --blacklist-cooldown-range 1h 1h "$trainer" --say "$say"
await_round 4

code=0
"$elastic" top "$job" --state-dir "$state" </dev/null >answer 2>&1 || code=$?
[ "$code" = 1 ] || die "without a terminal: exit code $code: $(cat answer)"
grep -q 'is not a terminal' answer || die "without a terminal: $(cat answer)"

look screen
await screen 'round 1: size 4 of 1 to'
await screen 'size +█'
await screen 'q quit'
press h
await screen '127\.0\.0\.2 +2  there +2 member'
kill -KILL "$(workers HVD_HOST=127.0.0.1 | head -n 1)" || die 'no worker on 127.0.0.1'
await screen 'round 2: size 3'
press c
await screen ' 2  recovery +4 -> 3'
press e
await screen 'killed by signal 9'
press d 1 2 7 . 0 . 0 . 2
await screen 'drain which host, or HOST:SLOT\? 127\.0\.0\.2_'
press enter
await screen '127\.0\.0\.2: is being drained'
press q
ends 0
gives_back screen

# Ctrl-Z gives the terminal back, and the viewer goes on when it is continued
look stopped
await stopped 'q quit'
child=$(pgrep -P "$viewer") || die 'the viewer has no process'
press ctrl-z
await_true 'the stop of the viewer by Ctrl-Z' grep -q '^State:.*stopped' "/proc/$child/status"
gives_back stopped
kill -CONT "$child"
await_after stopped 'q quit' 1 'job .*running'
press q
ends 0
gives_back stopped

# Ctrl-C ends a viewer, too, and so does a terminal that closes
look second
await second 'q quit'
press size=40x10
press down
press ctrl-c
ends 0
gives_back second
look third
await third 'q quit'
press close
await_end "$viewer" || die 'a viewer whose terminal has closed does not end'
exec 7>&-

# a driver that ends while a viewer looks
look fourth
await fourth 'q quit'
ask stop >/dev/null || die 'stop'
# no further line comes, only the last one anew
await_true 'a word about the end of the driver' grep -q 'no driver of this job' fourth
press q
ends 0
gives_back fourth
say_line 'top: as it should be'
