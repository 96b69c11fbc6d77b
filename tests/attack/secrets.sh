#!/usr/bin/env bash
# Another process of the same user, and a reader of the job's files. The harm: the memory of driver and
# agent, in which the job's key is, can be read by any program of the user, a worker's too; a password in
# the environment is found in the job's files.
#
#     secrets.sh ELASTIC TRAINER
. "$(dirname "$0")/../shell/lib.sh"
test_begin "$@"
token=$(head -c 12 /dev/urandom | od -An -tx1 | tr -d ' \n')

# ---- a variable that is in no file ----
refuse() {
  "$elastic" "$@" >>"$out" 2>"$err.refused" </dev/null && die "'$*' was not refused"
  grep -qF -- "$says" "$err.refused" || die "'$*' does not say '$says': $(cat "$err.refused")"
}
says='--env-secret TOKEN: there is no such variable here'
refuse -np 1 -H 127.0.0.1:1 --env-secret TOKEN true
says='--env-secret TOKEN=...: the value on a command line is no secret'
TOKEN=x refuse -np 1 -H 127.0.0.1:1 --env-secret TOKEN=x true

# scan HEX PID...: how often these bytes are in the memory of these processes, or nothing if it cannot be read. Mappings
# of sanitizers, which are large, are left out.
scan() {
  python3 - "$@" <<'PY' 2>/dev/null
import sys
word, found = bytes.fromhex(sys.argv[1]), 0
for pid in sys.argv[2:]:
    with open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for line in open(f"/proc/{pid}/maps"):
            span, rights = line.split()[:2]
            at, end = (int(part, 16) for part in span.split("-"))
            if not rights.startswith("rw") or end - at > 1 << 27:
                continue
            try:
                memory.seek(at)
                found += memory.read(end - at).count(word)
            except (OSError, MemoryError):
                pass
print(found)
PY
}

agents() {
  local pid
  for pid in $(marked); do
    if [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = hvd-agent ]; then echo "$pid"; fi
  done
}

# shellcheck disable=SC2016 # for the workers' shell
command='echo "$TOKEN" >>"$0"; exec "$1" --say "$2"'
# The secret of AWS needs no option. The value is the same, so one search finds both.
AWS_ACCESS_KEY_ID=AK AWS_SECRET_ACCESS_KEY=$token TOKEN=$token start -np 2 --min-np 1 -H 127.0.0.1:2 --env-secret TOKEN \
  sh -c "$command" "$folder/told" "$trainer" "$say"
await_round 2
if found=$(grep -rlF "$token" "$state"); then die "the value is in $found"; fi
# The key of the job never comes to an agent or a worker. The driver has it, or this would show nothing.
key=$(python3 -c 'import sqlite3, sys; print(sqlite3.connect(sys.argv[1]).execute("SELECT key FROM fact").fetchone()[0])' \
  "$state/job.db" 2>/dev/null)
mapfile -t others < <(
  agents
  workers
)
if [ -z "$key" ] || [ "$(scan "$key" "$driver")" = '' ]; then
  say_line 'skipped: the look into memory: there is no python3, or this kernel forbids it'
else
  [ "$(scan "$key" "$driver")" != 0 ] || die 'the key is not found in the driver, so this shows nothing'
  [ "$(scan "$key" "${others[@]}")" = 0 ] || die 'the key of the job is in the memory of an agent or a worker'
  [ "$(scan "$(printf %s "$key" | od -An -v -tx1 | tr -d ' \n')" "${others[@]}")" = 0 ] ||
    die 'the key of the job is in the memory of an agent or a worker, in hexadecimal'
fi
grep -qaF 'AWS_ACCESS_KEY_ID=AK' "$state/command" || die 'the variables that are no secrets are not kept for --resume'
grep -qaF 'TOKEN' "$state/command" || die 'the name is not kept for --resume'
[ "$(TOKEN=$token "$elastic" --print-config -np 1 --env-secret TOKEN true | grep -cF "$token")" = 0 ] ||
  die 'the value is in --print-config'
kill_driver
says='--env-secret TOKEN: there is no such variable here, and no file of the job has its value'
refuse --resume "$job" --state-dir "$state"
TOKEN=$token BODY_TEST=$folder "$elastic" --resume "$job" --state-dir "$state" >>"$out" 2>>"$err" </dev/null &
driver=$!
await "$err" 'AWS_ACCESS_KEY_ID has the value with which the job was started, but AWS_SECRET'
await "$err" "job $job: term 2"
kill -KILL "$(workers | head -n 1)"
await "$folder/told" "^$token\$" 3 # the third worker, started by the successor
if found=$(grep -rlF "$token" "$state"); then die "after a takeover the value is in $found"; fi
ask stop >>"$out" 2>>"$err"
finish 143

# ---- the memory of driver and agent ----
user=12345
as=(setpriv --reuid "$user" --regid "$user" --clear-groups env -u HVD_TRACEABLE "HOME=$folder/hers")
if [ "$(id -u)" != 0 ]; then
  as=(env -u HVD_TRACEABLE) # driver and agent of this user, who looks at them
elif ! "${as[@]}" test -x "$elastic" -a -x "$trainer"; then
  skip "the memory: another user cannot read the programs in $(dirname "$elastic")"
fi
new_job
mkdir -p "$folder/hers" && state=$folder/hers/$job
chmod 0711 "$folder"
[ "$(id -u)" != 0 ] || { chown -R "$user" "$folder/hers" && chmod 0666 "$say"; }
BODY_TEST=$folder "${as[@]}" "$elastic" --job "$job" --state-dir "$state" -np 1 -H 127.0.0.1:1 \
  "$trainer" --say "$say" >>"$out" 2>>"$err" </dev/null &
driver=$!
await_round 1
worker=$(workers)
agent=$(parent "$worker")
# look FILE PID: whether a process of the same user can open that
# shellcheck disable=SC2016 # for that process
look() { "${as[@]}" sh -c ': <"$0"' "/proc/$2/$1" 2>/dev/null; }
for file in mem environ maps auxv; do
  for pid in "$driver" "$agent"; do
    ! look "$file" "$pid" || die "/proc/$pid/$file of $(cat "/proc/$pid/comm") can be read"
  done
done
for pid in "$driver" "$agent"; do
  ! "${as[@]}" ls "/proc/$pid/fd" >/dev/null 2>&1 || die "/proc/$pid/fd can be listed"
done
for file in mem environ; do
  look "$file" "$worker" || die "the worker's $file cannot be opened by its own user"
done
"${as[@]}" "$elastic" stop --state-dir "$state" >>"$out" 2>>"$err" || die 'not stopped'
await_driver
[ "$code" = 143 ] || die "the driver's exit code is $code"
