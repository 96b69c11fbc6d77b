#!/usr/bin/env bash
# --page of a real job: the page and its headers, a stream that tells of a killed worker, a crowd of 1000 viewers and one
# that never reads, hosts and tokens that are refused, and the next driver. The verb "page" of the job when it lives, has no
# driver, and has ended.
#
#     page.sh ELASTIC TRAINER
. "$(dirname "$0")/../shell/lib.sh"
test_begin "$@"
command -v curl >/dev/null || skip 'there is no curl; ./dev setup installs it'

# url: that of the newest driver. get PATH WORDS...: the head and the body, into the file got.
url() { grep -oE 'the page is at http://[^ ]+' "$err" | tail -n 1 | sed 's/.* //'; }
get() {
  local path=$1
  shift
  curl -si --max-time "$PATIENCE" "$@" "$path" >got || die "curl $path: $?"
}
has() { grep -qF -- "$1" got || die "no '$1' in the answer: $(head -c 2000 got)"; }
trains() { await "$err" "round [0-9]+: all $1 train" "${2:-1}"; }
job_with_page() {
  start -np 4 --min-np 2 -H 127.0.0.1:2,127.0.0.2:2 --blacklist-cooldown-range 1h 1h --page "$1" "$trainer" --say "$say"
}

job_with_page 0
await "$err" 'the page is at http://127\.0\.0\.1:[0-9]+/$'
page=$(url)
trains 4
get "$page"
for part in 'HTTP/1.1 200 OK' "Content-Security-Policy: default-src 'none'; connect-src 'self'" \
  'Referrer-Policy: no-referrer' 'X-Content-Type-Options: nosniff' '<title>hvd-elastic</title>' '</html>'; do
  has "$part"
done
get "$page" -X POST
has 'HTTP/1.1 405 '
get "$page" -H 'Host: rebound.example'
has 'HTTP/1.1 403 '
get "${page}live" -H 'Host: rebound.example'
has 'HTTP/1.1 403 '
get "${page}nothing"
has 'HTTP/1.1 404 '

# a viewer, one that never reads, and then a crowd, through which a worker is killed
curl -sN "${page}live" >live 2>/dev/null &
viewer=$!
helpers+=("$viewer")
await live '"state":"running"'
cat >viewers.py <<'PY'
"""Viewers of a page: one that never reads, and a crowd. Says what became of each."""
import os, re, select, socket, sys, time
port, driver, patience, go = int(sys.argv[1]), sys.argv[2], float(sys.argv[3]), sys.argv[4]

def ask(small=False):
    viewer = socket.socket()
    if small:
        viewer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    viewer.connect(("127.0.0.1", port))
    viewer.sendall(f"GET /live HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
    return viewer

def driver_has(viewer):
    """The driver has a descriptor of its end of this connection."""
    mine = f":{viewer.getsockname()[1]:04X}"
    rows = [line.split() for line in open("/proc/net/tcp")]
    inodes = {f"socket:[{row[9]}]" for row in rows if row[2].endswith(mine) and row[1].endswith(f":{port:04X}")}
    links = set()
    for name in os.listdir(f"/proc/{driver}/fd"):
        try:
            links.add(os.readlink(f"/proc/{driver}/fd/{name}"))
        except FileNotFoundError:
            pass
    return bool(inodes & links)

def until(what, condition):
    end = time.monotonic() + patience
    while not condition():
        if time.monotonic() > end:
            sys.exit(f"it did not come: {what}")
        select.select([], [], [], 0.05)

stuck = ask(small=True)
until("the driver serves the viewer that never reads", lambda: driver_has(stuck))
crowd = [ask() for _ in range(1000)]
answers = []
for viewer in crowd:
    head = b""
    viewer.settimeout(patience)
    while b"\r\n\r\n" not in head:
        more = viewer.recv(4096)
        if not more:
            break
        head += more
    answers.append(head.split(b"\r\n", 1)[0].decode())
served, refused = answers.count("HTTP/1.1 200 OK"), answers.count("HTTP/1.1 503 Service Unavailable")
print(f"of 1000 viewers {served} are served and {refused} are refused", flush=True)
# 30 places are free, and that of the viewer that never reads if the driver has dropped it by now (10 s, a busy machine).
if served != 30 + (served == 31 and not driver_has(stuck)) or served + refused != 1000:
    sys.exit(f"unexpected answers: {sorted(set(answers))}")
until("the worker is killed", lambda: os.path.exists(go))
for viewer in crowd:
    viewer.close()
until("the driver drops the viewer that never reads", lambda: not driver_has(stuck))
print("the viewer that never reads is dropped")
PY
python3 viewers.py "$(sed 's/.*://; s/\///' <<<"$page")" "$driver" "$PATIENCE" "$folder/killed" >crowd 2>&1 &
crowd=$!
helpers+=("$crowd")
await_or_end crowd '.' 1 || die "the crowd: $(cat crowd)"
grep -qE ' 3[01] are served and 9(70|69) are refused' crowd || die "the crowd: $(cat crowd)"
victim=$(workers HVD_HOST=127.0.0.2 | head -n 1)
kill -KILL "$victim"
trains 3
await live '"severity":"warning","text":"127.0.0.2:[01]#[0-9]+: killed by signal 9[^}]*"kind":"worker_failed","round":1,'
await live '"cause":"recovery","from":4,"to":3,'
await live '"blacklist":\[\{"host":"127.0.0.2",'
: >killed
wait "$crowd" || die "the crowd: $(cat crowd)"
say_line "$(cat crowd)"
is_alive "$viewer" || die 'the viewer has lost its stream'
get "$page"
has 'HTTP/1.1 200 OK'

# every message is one line of JSON
grep '^data: ' live | sed '$d' | python3 -c '
import json, sys
for line in sys.stdin:
    message = json.loads(line[6:])
    assert set(message) == {"status", "hosts", "changes", "blacklist", "checkpoint", "events", "now", "hosts_left_out", "blacklist_left_out", "series"}, set(message)
' || die 'a message is no JSON'
! grep -vE '^(data: .*)?$' live >extra || die "more than messages: $(head -n 3 extra)"
# the verb "page" has the change as the driver has measured it; the log, which the ended job has left, has it rounded
cat >change.py <<'PY'
"""The data of a page. Says when it was, its state, and the recovery."""
import json, sys
page = json.load(open(sys.argv[1]))
live, history = page["live"], page["history"]
rows = {row["round"]: row for row in history["changes"]} | {row["round"]: row for row in live["changes"]["changes"]}
recovery = next(row for row in rows.values() if row["cause"] == "recovery")
assert (recovery["from"], recovery["to"]) == (4, 3) and recovery["pause_us"] > 0, recovery
logged = next(row for row in history["changes"] if row["round"] == recovery["round"])
for name in "pause_us", "agree_us", "rebuild_us", "state_us", "first_step_us":
    assert abs(logged[name] - recovery[name]) <= recovery[name] / 99, (name, logged, recovery)
assert any("killed by signal 9" in row["text"] and row["severity"] == "warning" for row in history["events"])
print(live["status"]["state"], live["status"]["goodput"]["lost_steps"]["worker_s"] if not page["ended"] else page["ended"])
PY
data_is() {
  ask page --json >page.json || die "page --json: $?"
  python3 change.py page.json >answer 2>&1 || die "page --json: $(cat answer)"
  grep -qE "^$1" answer || die "page --json: $(cat answer), not $1"
}
data_is 'running '
ask page >page.html || die "page: $?"
grep -qF '</html>' page.html || die 'the file of the page is not whole'
code=0
ask page >/dev/full 2>answer || code=$?
[ "$code" = 4 ] || die "page on a full disk: exit code $code: $(cat answer)"
grep -q 'standard output: No space left' answer || die "page on a full disk: $(cat answer)"
code=0
script -qec "$elastic page --state-dir $state" /dev/null </dev/null >answer 2>&1 || code=$?
[ "$code" = 2 ] || die "page on a terminal: exit code $code: $(cat answer)"
ask page | head -c 1 >/dev/null || die 'page does not bear a reader that ends'
before=$(sha256sum "$state/command")
ask stop >answer 2>&1 || die "stop: $(cat answer)"
finish 143
wait "$viewer" || true
data_is "ended \\{'code': 143, 'text': 'stopped by hvd-elastic stop'\\}"
mv "$state/events.log" "$state/events.log.1"
data_is 'ended '
[ "$(sha256sum "$state/command")" = "$before" ] || die 'the verb page has changed the job'

# an address that others reach: with the token of the log alone, which is that of the next driver, too
new_job
job_with_page 0.0.0.0:0
await "$err" 'the page is at http://0\.0\.0\.0:[0-9]+/\?token=[0-9a-f]{32}$'
page=$(url | sed 's/0\.0\.0\.0/127.0.0.1/')
trains 4
token=${page##*=}
get "$page"
has 'HTTP/1.1 200 OK'
get "$page" -H 'Host: node7.example'
has 'HTTP/1.1 200 OK'
for path in "${page%%\?*}" "${page%%\?*}live" "${page%?}x" "${page/token=/token=0}"; do
  get "$path"
  has 'HTTP/1.1 403 '
  ! grep -q "$token" got || die 'the token is in the answer'
done
kill_driver
job_with_page 0.0.0.0:0
await "$err" 'the page is at http' 2
[ "$(url | sed 's/.*=//')" = "$token" ] || die "another token: $(url)"
page=$(url | sed 's/0\.0\.0\.0/127.0.0.1/; s/?/live?/')
curl -sN "$page" >live2 2>/dev/null &
helpers+=("$!")
await live2 '"term":2,'
! grep -qF "$token" "$state/events.log" || die 'the token is in events.log'
ask stop >answer 2>&1 || die "stop: $(cat answer)"
finish 143

# --page-control: also on the loopback with the token alone, which a request that changes the job has in a header
new_job
start -np 4 --min-np 2 -H 127.0.0.1:2,127.0.0.2:2 --page 0 --page-control "$trainer" --say "$say"
await "$err" 'the page is at http://127\.0\.0\.1:[0-9]+/\?token=[0-9a-f]{32}$'
page=$(url)
token=${page##*=} page=${page%%\?*}
trains 4
get "${page}"
has 'HTTP/1.1 403 '
get "${page}drain" -d 127.0.0.2
has 'HTTP/1.1 403 '
get "${page}drain" -d 127.0.0.2 -H "Authorization: Bearer $token" -H 'Origin: http://rebound.example'
has 'HTTP/1.1 403 '
ask hosts --json >answer || die "hosts: $(cat answer)"
! grep -q '"draining":true' answer || die 'a refused request has drained a host'
for _ in 1 2; do
  get "${page}drain" -d 127.0.0.2 -H "Authorization: Bearer $token" -H "Origin: ${page%/}"
  has 'HTTP/1.1 200 '
  has '127.0.0.2 is being drained'
done
trains 2
get "${page}undrain" -d 127.0.0.2 -H "Authorization: Bearer $token"
has '127.0.0.2 may be used again'
trains 4 2
get "${page}drain" -d nowhere -H "Authorization: Bearer $token"
has 'HTTP/1.1 404 '
has 'nowhere: no such host in this job'
get "${page}stop" -X POST -H "Authorization: Bearer $token"
has 'the job is being stopped'
finish 143
! grep -qF "$token" "$state/events.log" || die 'the token is in events.log'
grep -q 'stopped by the page' "$state/events.log" || die 'events.log does not say that the page has stopped the job'
code=0
"$elastic" -np 1 --page-control true >answer 2>&1 || code=$?
[ "$code" = 2 ] || die "--page-control without --page: exit code $code, not 2: $(cat answer)"
grep -q -- '--page-control: there is no page' answer || die "--page-control without --page: $(cat answer)"

for place in 70000 nowhere:1 1.2.3.4:x; do
  code=0
  "$elastic" -np 1 --page "$place" true >answer 2>&1 || code=$?
  [ "$code" = 2 ] || die "--page $place: exit code $code, not 2: $(cat answer)"
  grep -q -- "--page $place: " answer || die "--page $place: $(cat answer)"
done
