#!/usr/bin/env bash
# hvd-elastic as a service of systemd: the datagrams of sd_notify say that the job runs, that a driver has died, and that
# the job ends; no worker can speak for the service; the units of deploy/systemd are free of mistakes.
#
#     service.sh ELASTIC TRAINER
units=$(realpath "$(dirname "$0")/../../deploy/systemd")
. "$(dirname "$0")/../shell/lib.sh"
test_begin "$@"
unset HVD_RESTART

cat >listen.py <<'END'
"""Prints the datagrams that come to a socket of this name."""
import socket
import sys

listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
name = sys.argv[1]
listener.bind("\0" + name[1:] if name[0] == "@" else name)
print("listening", flush=True)
while True:
    print(listener.recv(4096).decode(), flush=True)
END

# watch NAME: what comes to the socket goes to the file `news`, and this is the socket of what is started from now on
watch() {
  news=$folder/$job.news
  python3 listen.py "$1" >"$news" &
  listener=$!
  helpers+=("$listener")
  await "$news" '^listening'
  export NOTIFY_SOCKET=$1
}

watch "$folder/notify"
start -np 2 -H 127.0.0.1:2 "$trainer" --step-ms 5 --say "$say"
await "$news" '^READY=1'
await_round 2
for pid in $(workers); do
  [ -z "$(variable "$pid" NOTIFY_SOCKET)" ] || die "the worker $pid could speak for the service"
done
child=$(pgrep -P "$driver")
kill -KILL "$child"
await "$news" "^STATUS=job $job: the driver \\(pid $child\\) died of signal 9"
await "$news" '^READY=1' 2
grep -q '^STOPPING' "$news" && die "a dead driver is not the end of the service: $(cat "$news")"
kill -TERM "$driver"
await_driver
[ "$code" = 143 ] || die "SIGTERM: exit code $code, not 143"
await "$news" '^STOPPING=1'
nothing_left

# a name without a file; and a socket that no process reads holds nothing up
new_job
watch "@$folder/notify"
start -np 1 -H 127.0.0.1:1 "$trainer" --steps 10 --say "$say"
finish 0
await "$news" '^READY=1'
for name in "$folder/missing" relative "@$(printf '%0200d' 7)" ''; do
  new_job
  export NOTIFY_SOCKET=$name
  start -np 1 -H 127.0.0.1:1 "$trainer" --steps 10 --say "$say"
  finish 0
done
say_line 'the job runs with any NOTIFY_SOCKET'

if ! command -v systemd-analyze >/dev/null; then
  say_line 'systemd-analyze is not installed, and the units were not looked at'
  exit 0
fi
for unit in "$units"/*.service; do
  name=$(basename "$unit")
  sed -e "s|^ExecStart=/usr/bin/hvd-elastic |ExecStart=$elastic |" -e \
    "s|^ExecStart=/usr/bin/hvd-agent |ExecStart=$(realpath "$(dirname "$elastic")/../agent/hvd-agent") |" "$unit" >"${name/@/@train}"
  systemd-analyze verify --man=no --recursive-errors=one "./${name/@/@train}" >verified 2>&1 || die "$name: $(cat verified)"
  say_line "$name: $(systemd-analyze --version | head -n 1) finds no mistake"
done
