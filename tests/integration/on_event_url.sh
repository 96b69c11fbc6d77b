#!/usr/bin/env bash
# --on-event-url of a real job: a web server is told each event, as "events --json" shows it, on one connection; one that is
# away for a moment gets all events; one that hangs holds up no recovery; the next driver goes on telling; no secret is
# in a log; a server with a certificate is believed if the authority that has signed it was named.
#
#     on_event_url.sh ELASTIC TRAINER
. "$(dirname "$0")/../shell/lib.sh"
test_begin "$@"
unset http_proxy https_proxy all_proxy HTTPS_PROXY ALL_PROXY
serve events python3 "$(dirname "$script")/../shell/event_server.py"
url="http://anna:pa55@$address/hook/s3cret?key=k3y"
printf 'X-Token: t0ken\n' >headers
chmod 600 headers

# refused TEXT OPTION...: at the start, with code 2 and this text
refused() {
  local code=0 text=$1
  shift
  "$elastic" -np 1 -H localhost:1 "$@" true >answer 2>&1 || code=$?
  [ "$code" = 2 ] || die "$*: exit code $code, not 2: $(cat answer)"
  grep -qF -- "$text" answer || die "$*: $(cat answer)"
  ! grep -qE 'pa55|s3cret|k3y|t0ken' answer || die "a secret is shown: $(cat answer)"
}
refused 'it is not the URL of a web server' --on-event-url "ftp://anna:pa55@$address/s3cret"
refused 'it names no valid server' --on-event-url "http://anna:pa55@b@$address/s3cret"
refused 'there is no URL; give --on-event-url too' --on-event-url-header-file headers
refused 'headers.wrong: cannot open: No such file' --on-event-url "$url" --on-event-url-header-file headers.wrong
printf 'X-Token t0ken\n' >headers.wrong
chmod 600 headers.wrong
refused 'headers.wrong:1: the line is no header; write "Name: value"' --on-event-url "$url" --on-event-url-header-file headers.wrong
chmod 644 headers.wrong
refused "other users can read or change this file, which has a secret (mode 0644); run: chmod o-rwx,g-w headers.wrong" \
  --on-event-url "$url" --on-event-url-header-file headers.wrong

refused '--on-event-url-ca: there is no URL; give --on-event-url too' --on-event-url-ca headers
refused 'the URL of --on-event-url has no TLS; write https://' --on-event-url "$url" --on-event-url-ca headers
refused '--on-event-url-ca: gone.pem: cannot open: No such file' --on-event-url "https${url#http}" --on-event-url-ca gone.pem
refused '--on-event-url-ca: headers: the file has no certificate' --on-event-url "https${url#http}" --on-event-url-ca headers

# no_secrets: what the driver and the agents have printed
no_secrets() {
  ! grep -nsE 'pa55|s3cret|k3y|t0ken' "$out" "$err" "$state"/agents/*.log || die 'a secret is in a log'
}

# ---- all events, while a worker dies, and while the server is away
start -np 3 --min-np 2 -H 127.0.0.1:2,127.0.0.2:1 --on-event-url "$url" --on-event-url-header-file headers --on-event-filter debug \
  --on-event "tee -a $folder/told_command" "$trainer" --say "$say"
await_round 3
await told '"kind":"round_trains".*"cause":"first"'
echo 503 >fails
kill -KILL "$(workers HVD_HOST=127.0.0.1 | head -n 1)"
await_round 3
await "$err" "on-event-url: an event is held up, and later ones wait; .*http://$address answers with the HTTP status 503"
rm fails
await told '"severity":"warning".*"kind":"worker_failed","round":[0-9]+,"host":"127.0.0.1","slot":[01],"incarnation":[0-9]+,"cause":"[^"]*SIGKILL'
await told '"kind":"round_trains".*"pause_us":[0-9]+.*"cause":"recovery"'
await "$err" "on-event-url: http://$address works again; 0 events were lost"
ask status >answer || die "status: exit code $?"
cat answer >>"$out"
ask stop || die "stop: exit code $?"
finish 143
ask events --json >listed || die "events --json: exit code $?"
cmp told listed || die "the server was told other events than the log has: $(diff told listed)"
cmp told told_command || die "server and command were told other events: $(diff told told_command)"
python3 - >wrong 2>&1 <<'PY' || die "what the server was told: $(tail -n 3 wrong)"
import base64, json
events = [json.loads(line) for line in open("told")]
assert [event["kind"] for event in events].count("job_over") == 1 and events[0]["kind"] == "driver_started", events
asked = [line.split("\t") for line in open("asked")]
connections = {words[0] for words in asked}
assert len(connections) == 1, f"{len(connections)} connections for {len(asked)} requests"
for _, path, headers in asked:
    headers = json.loads(headers)
    assert path == "/hook/s3cret?key=k3y" and headers["X-Token"] == "t0ken", (path, headers)
    assert headers["Content-Type"] == "application/json", headers
    assert headers["Authorization"] == "Basic " + base64.b64encode(b"anna:pa55").decode(), headers
PY
no_secrets

# ---- a server that hangs: the recovery goes on beside it, and the next driver goes on telling
new_job
rm -f told asked
HVD_ON_EVENT_URL=$url start -np 3 --min-np 2 -H 127.0.0.1:2,127.0.0.2:1 --on-event-url-header-file headers \
  --on-event-filter warning,round_trains,job_over,driver_started "$trainer" --say "$say"
await_round 3
await told '"kind":"round_trains".*"cause":"first"'
: >hangs
kill -KILL "$(workers HVD_HOST=127.0.0.1 | head -n 1)"
await hanging '"kind":"worker_failed"'
await_round 3
for pid in $(workers); do
  [ -z "$(variable "$pid" HVD_ON_EVENT_URL)" ] || die 'a worker has the URL in its environment'
done
kill_driver
rm hangs
BODY_TEST=$folder "$elastic" --resume "$job" --state-dir "$state" >>"$out" 2>>"$err" </dev/null &
driver=$!
await told '"kind":"driver_started"' 2
for host in 127.0.0.1 127.0.0.2; do
  await_after "$err" 'is taken over' 1 "$host: (the|an) agent of this host"
done

# ---- a driver that takes the job over without the file of headers goes on without the URL
kill_driver
rm headers
BODY_TEST=$folder "$elastic" --resume "$job" --state-dir "$state" >>"$out" 2>>"$err" </dev/null &
driver=$!
await "$err" 'the job goes on without --on-event-url: --on-event-url-header-file: headers: cannot open: No such file'
for host in 127.0.0.1 127.0.0.2; do
  await_after "$err" 'is taken over' 2 "$host: (the|an) agent of this host"
done
ask stop || die "stop: exit code $?"
finish 143
no_secrets

# ---- a server that hangs at the end of a job holds the driver up for a moment only
new_job
: >hangs
printf 'X-Token: t0ken\n' >headers
chmod 600 headers
start -np 1 -H 127.0.0.1:1 --on-event-url "$url" --on-event-url-header-file headers --on-event-timeout 1h true
finish 0
rm hangs
grep -qE "on-event-url: http://$address was not told the last [0-9]+ events" "$err" || die 'the log does not say which events were not told'
no_secrets

# ---- a server with a certificate: the authority that has signed it is named, another one is, and none is
command -v openssl >/dev/null || die 'there is no openssl; ./dev setup installs it'
certify() {
  openssl req -x509 -newkey rsa:2048 -nodes -days 2 -keyout "$1.key" -out "$1.pem" -subj "/CN=$1" "${@:2}" 2>answer ||
    die "openssl makes no certificate: $(cat answer)"
}
certify ours
certify others
certify hooks -CA ours.pem -CAkey ours.key -addext 'subjectAltName=IP:127.0.0.1'
cat hooks.pem hooks.key >hooks.both
EVENT_CERT=$folder/hooks.both serve secure python3 "$(dirname "$script")/../shell/event_server.py"
url="https://anna:pa55@$address/hook/s3cret?key=k3y"
new_job
rm -f told
start -np 1 -H 127.0.0.1:1 --on-event-url "$url" --on-event-url-header-file headers --on-event-url-ca "$folder/ours.pem" true
finish 0
grep -q '"kind":"job_over"' told || die "a server with a certificate is not told the end: $(cat told "$err")"
! grep -q 'on-event-url: ' "$err" || die "there is a trouble with the server: $(grep 'on-event-url: ' "$err")"
for wrong_ca in "--on-event-url-ca $folder/others.pem" ''; do
  new_job
  rm -f told
  # shellcheck disable=SC2086 # two words, or none
  start -np 1 -H 127.0.0.1:1 --on-event-url "$url" --on-event-url-header-file headers $wrong_ca true
  finish 0
  [ ! -e told ] || die 'a server whose certificate no known authority has signed was told of events'
  [ "$(grep -c 'on-event-url: an event is held up, .*certificate.*signs the server.s certificate with --on-event-url-ca' "$err")" = 1 ] ||
    die "the log does not name the authority once: $(cat "$err")"
done
no_secrets
say_line 'a web server is told each event, in order, also by the next driver; one that is away or hangs holds up nothing'
