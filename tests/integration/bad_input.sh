#!/usr/bin/env bash
# Mistakes of operators, scripts, disks, workers and strangers. Each time: a message that says what it
# was, nothing left running, nothing lost.
#
#     bad_input.sh ELASTIC TRAINER MIB [CASE...]       MIB: how much a worker prints
. "$(dirname "$0")/../shell/lib.sh"
test_begin "$@"
mib=$3
shift 3

# says TEXT: the driver has.
says() { grep -qF -- "$1" "$err" || die "$case_now: the driver does not say '$1'"; }

# refused CODE TEXT WORDS...: the driver ends with that code and says that; all that do otherwise are
# shown before the test fails.
refused() {
  local want=$1 text=$2
  shift 2
  start "$@"
  await_driver
  if [ "$code" != "$want" ] || ! grep -qF -- "$text" "$err" || grep -q 'trains on' "$err"; then
    say_line "$*: exit code $code, wanted $want and '$text':"
    cat "$err"
    faults=$((faults + 1))
  fi
  nothing_left
  new_job
}
faults=0

program() { # NAME, its text on standard input
  { echo '#!/bin/sh' && cat; } >"$1"
  chmod +x "$1"
}

# ---- the command line ------------------------------------------------------------------------------

usage() {
  refused 2 'the command is missing' -np 2 -H 127.0.0.1:2
  refused 2 '--no-such-option' --no-such-option true
  refused 2 '--mpi' --mpi -np 2 true
  refused 2 'min-np' -np 2 --min-np 4 --max-np 3 -H 127.0.0.1:2 true
  refused 2 '"x"' -np 2 -H 127.0.0.1:x true
  refused 2 'lower -np, or list more hosts' -np 4 -H 127.0.0.1:2 --elastic-timeout 1s true
  echo 127.0.0.1:2 >two.hosts
  refused 3 'only 0 of 4 workers' -np 4 --hostfile two.hosts --elastic-timeout 1s true
  refused 2 'eth77' -np 1 -H 127.0.0.1:1 --network-interface eth77 true
  refused 2 '/proc/none' -np 1 -H 127.0.0.1:1 --output-filename /proc/none true
  echo text >plain.out
  refused 2 'plain.out' -np 1 -H 127.0.0.1:1 --output-filename plain.out true
  refused 1 'no-such-program' -np 1 -H 127.0.0.1:1 --blacklist-forever no-such-program
  refused 2 '--launcher: "no-such-way" is no program of the PATH; name ssh, or a command that is called as' \
    -np 1 -H 127.0.0.1:1 --launcher no-such-way true
  refused 2 '--launcher: srun may end an agent' -np 1 -H 127.0.0.1:1 --launcher 'srun --overlap' true
  refused 2 '--launcher: "sh" gets no options of ssh' -np 1 -H 127.0.0.1:1 --launcher sh --ssh-args -v true
}

# ---- the discovery script --------------------------------------------------------------------------

script_first() {
  refused 2 './none.sh' -np 1 --host-discovery-script ./none.sh true
  echo '127.0.0.1:1' >plain.txt
  refused 2 './plain.txt' -np 1 --host-discovery-script ./plain.txt true
  program broken.sh <<<'echo the cloud is down >&2; exit 3'
  refused 1 'the cloud is down' -np 1 --host-discovery-script ./broken.sh true
  program rubbish.sh <<<'echo "a b c:2"; head -c 100 /dev/urandom'
  refused 1 'a b c:2' -np 1 --host-discovery-script ./rubbish.sh true
  program endless.sh <<<'yes 127.0.0.1:1'
  refused 1 '' -np 1 --host-discovery-script ./endless.sh true
  program hangs.sh <<<'sleep 3600 & sleep 3600'
  refused 1 '' -np 1 --discovery-timeout 300ms --host-discovery-script ./hangs.sh true
}

# It goes wrong in one way after the other while the job trains; in the end it is right again.
script_later() {
  local ways way
  program now.sh <<<'. ./way'
  echo 'echo 127.0.0.1:2' >way
  start -np 2 --min-np 1 --max-np 3 --discovery-timeout 5s --host-discovery-script ./now.sh \
    "$trainer" --say "$say"
  await_round 2
  declare -A ways=(['echo no cloud >&2; exit 3']='no cloud' ['echo "x y:2"']='x y:2' ['kill -9 $$']='signal 9'
    ['sleep 3600 & sleep 3600']='did not end within' [yes]='printed more than')
  for way in "${!ways[@]}"; do
    echo "$way" >way.new
    mv way.new way
    await "$err" "discovery has failed.*${ways[$way]}"
  done
  echo 'echo 127.0.0.1:2; echo 127.0.0.2:1' >way.new
  mv way.new way
  kill -USR1 "$driver"
  await_round 3
  ask stop || die 'stop'
  finish 143
}

# ---- the state directory ---------------------------------------------------------------------------

state_wrong() {
  echo text >"$state"
  refused 4 "$state" -np 1 -H 127.0.0.1:1 true
  state=/proc/none
  refused 4 /proc/none -np 1 -H 127.0.0.1:1 true

  start -np 1 -H 127.0.0.1:1 true
  finish 0
  sqlite3 "$state/job.db" 'PRAGMA user_version = 99' || die 'sqlite3'
  cp "$state/job.db" version.db
  start -np 1 -H 127.0.0.1:1 true
  finish 4
  says "$state/job.db"
  cmp version.db "$state/job.db" || die 'a file of another version was changed'

  head -c 10000 /dev/urandom >"$state/job.db"
  cp "$state/job.db" rubbish.db
  start -np 1 -H 127.0.0.1:1 true
  finish 4
  cmp rubbish.db "$state/job.db" || die 'a file that is damaged was changed'
}

# A disk of our own, in a mount namespace of our own: only for root.
state_full() {
  if [ "$(id -u)" != 0 ] || ! unshare -m true 2>/dev/null; then
    say_line 'state_full: left out, only root can mount'
    return
  fi
  if [ -z "${BODY_MOUNTS:-}" ]; then
    BODY_MOUNTS=1 unshare -m --propagation private "$script" "$elastic" "$trainer" "$mib" state_full ||
      die 'state_full'
    return
  fi
  mkdir disk
  mount -t tmpfs -o size=1m tmpfs disk
  mount -o remount,ro disk
  state=$folder/disk/job
  refused 4 "$folder/disk" -np 1 -H 127.0.0.1:1 true
  mount -o remount,rw disk
  head -c 2000000 /dev/zero >disk/ballast 2>/dev/null
  state=$folder/disk/job
  refused 4 "$folder/disk" -np 1 -H 127.0.0.1:1 true
  rm disk/ballast

  # while it trains: the driver gives up, the workers do not; a successor goes on
  state=$folder/disk/job
  start -np 2 --min-np 1 -H 127.0.0.1:2 "$trainer" --say "$say"
  await_round 2
  head -c 2000000 /dev/zero >disk/ballast 2>/dev/null
  local keeps loses
  { read -r keeps && read -r loses; } < <(workers)
  kill -KILL "$loses"
  await_driver
  [ "$code" = 4 ] || die "with a full disk the driver's exit code is $code, not 4"
  says '--resume'
  is_alive "$keeps" || die 'a worker has died with the driver'
  rm disk/ballast
  start -np 2 --min-np 1 -H 127.0.0.1:2 "$trainer" --say "$say"
  await_round 2
  is_alive "$keeps" || die 'a worker has died with the takeover'
  ask stop || die 'stop'
  finish 143
  umount disk
}

two_drivers() {
  local first before
  start -np 2 -H 127.0.0.1:2 "$trainer" --say "$say"
  await_round 2
  before=$(workers)
  first=$driver
  start -np 2 -H 127.0.0.1:2 "$trainer" --say "$say"
  await_driver
  [ "$code" = 2 ] || die "the second driver's exit code is $code, not 2"
  says "$first"
  start --takeover -np 2 -H 127.0.0.1:2 "$trainer" --say "$say"
  await "$err" "the driver of this job lives \(pid $first\), and is replaced"
  await_end "$first" || die 'the first driver does not notice that it was replaced'
  wait "$first"
  code=$?
  [ "$code" = 5 ] || die "the first driver's exit code is $code, not 5"
  await "$err" '(is back|says hello) with 2 workers'
  [ "$(workers)" = "$before" ] || die 'workers were started anew'
  ask stop || die 'stop'
  finish 143
}

# ---- workers ---------------------------------------------------------------------------------------

worker_stays() {
  start -np 2 -H 127.0.0.1:2 --kill-grace 300ms "$trainer" --ignore-term --daemon --say "$say"
  await_round 2
  ask stop || die 'stop'
  finish 143

  new_job # what it leaves behind goes with it, and does not keep its end from being known
  start -np 2 -H 127.0.0.1:2 "$trainer" --daemon --steps 20
  finish 0
  new_job
  start -np 2 -H 127.0.0.1:2 "$trainer" --close-stdout --steps 20
  finish 0
  new_job
  start -np 2 --min-np 1 -H 127.0.0.1:2 "$trainer" --daemon --exit-at 5 --once "$folder/once" --say "$say"
  await_round 2
  await_round 2
  ask stop || die 'stop'
  finish 143
}

# Each byte is in the output, or is counted in the log: no more than 16 MiB wait for a disk that is slow.
all_printed() { # BYTES that each of two workers prints in each of 32 steps, in lines of 79 with a label of 16
  local lines=$((($1 + 78) / 79)) right shown lost
  right=$((64 * ($1 + lines * 16)))
  shown=$(wc -c <"$out")
  lost=$(sed -n "s/.* \([0-9]*\) bytes of the workers' output were left out.*/\1/p" "$err" | awk '{ sum += $1 } END { print sum + 0 }')
  [ $((shown + lost)) = $right ] || die "$shown bytes were printed and $lost left out, of $right"
  [ "$lost" = 0 ] || [ "$shown" -ge $((15 << 20)) ] || die "only $shown bytes were printed"
}

worker_prints() {
  local bytes=$((mib * 1024 * 1024)) PATIENCE=$((PATIENCE + mib))
  start -np 2 -H 127.0.0.1:2 "$trainer" --steps 32 --step-ms 1 --print $((bytes / 32))
  finish 0
  all_printed $((bytes / 32))

  # no process reads the driver's output: workers wait, then go on without being heard
  new_job
  mkfifo "$folder/nobody"
  exec {nobody}<>"$folder/nobody"
  out=$folder/nobody
  start -np 2 --min-np 1 -H 127.0.0.1:2 "$trainer" --print 1000000 --say "$say"
  await_round 2
  kill -KILL "$(workers | head -n 1)"
  await_round 2
  ask stop || die 'stop'
  finish 143
  exec {nobody}<&-
  rm "$folder/nobody"
}

# ---- operators, and strangers -------------------------------------------------------------------------

ctrl_c() {
  start -np 2 -H 127.0.0.1:2 "$trainer" --say "$say"
  await_round 2
  kill -INT "$driver"
  finish 130

  new_job
  start -np 2 -H 127.0.0.1:2 --kill-grace 1h "$trainer" --ignore-term --say "$say"
  await_round 2
  kill -INT "$driver"
  await "$err" 'a second stop kills them at once'
  kill -INT "$driver"
  finish 130

  new_job # before anything has begun
  program slow.sh <<<'echo runs >runs; sleep 3600'
  start -np 2 --host-discovery-script ./slow.sh true
  await runs runs
  kill -INT "$driver"
  finish 130
}

strangers() {
  local port lines i fd
  start -np 2 --min-np 1 -H 127.0.0.1:2 "$trainer" --say "$say"
  await_round 2
  port=$(sed -n 's/.*listens for agents at .*:\([0-9]*\).*/\1/p' "$err" | tail -n 1)
  [ -n "$port" ] || die 'the driver does not say where it listens'
  lines=$(wc -l <"$err")
  for i in {1..200}; do
    exec {fd}<>"/dev/tcp/127.0.0.1/$port" || die 'nobody listens'
    case $((i % 4)) in
      0) head -c 5000 /dev/urandom >&"$fd" ;;
      1) printf 'GET / HTTP/1.1\r\n\r\n' >&"$fd" ;;
      2) printf 'hvdE\001\000\145\000\377\377\377\000' >&"$fd" ;;
    esac 2>/dev/null
    exec {fd}>&-
  done
  if command -v openssl >/dev/null; then
    timeout "$PATIENCE" openssl s_client -connect "127.0.0.1:$port" -tls1_3 -psk_identity "$job" \
      -psk 00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff </dev/null \
      >wrong-key.txt 2>&1
    grep -qi 'alert\|error\|failure' wrong-key.txt || die 'a wrong key is let in'
  fi
  kill -KILL "$(workers | head -n 1)"
  await_round 2
  [ $(($(wc -l <"$err") - lines)) -lt 100 ] || die 'strangers fill the log'
  ask stop || die 'stop'
  finish 143
}

cases=${*:-usage script_first script_later state_wrong state_full two_drivers worker_stays
  worker_prints ctrl_c strangers}
for case_now in $cases; do
  say_line "$case_now"
  "$case_now"
  new_job
done
[ $faults = 0 ] || die "$faults faults, see above"
