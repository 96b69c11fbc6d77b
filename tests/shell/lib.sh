# shellcheck shell=bash
# For tests of the two programs as an operator runs them. Sourced by tests/integration/*.sh:
#
#     . "$(dirname "$0")/../shell/lib.sh"
#     test_begin ELASTIC TRAINER
#     start -np 2 -H 127.0.0.1:2 -- "$trainer" --steps 50 --say "$say"
#     await_round 2
#     finish 0
#
# Everything lives in a folder of its own, which is also HOME. Every process that a run starts has
# BODY_TEST in its environment, so that what it leaves behind can be found, under any parent.
# BODY_KEEP=1 keeps the folder, with all logs in it.
# Each wait is for an event. PATIENCE seconds are the bound of a hang: a busy machine does not take so long.
set -uo pipefail

PATIENCE=${PATIENCE:-180}
# shellcheck disable=SC2034 # for the scripts
script=$(realpath "$0")
NAP=0.02 # between two looks at a process that is not our child
driver='' jobs_made=0 saying='' say_reader=''
helpers=() # that hide our mark: ended with the test
unset "${!HVD_@}" "${!HOROVOD_@}" XDG_STATE_HOME XDG_CONFIG_HOME
# Driver and agent close their /proc entries to other processes of their user, also to `marked`; only
# a root with all its capabilities may look there (tests/attack/secrets.sh).
export HVD_TRACEABLE=1
# Tests kill and measure the driver that they have started: it has no parent process of its own.
# tests/integration/front.sh is about that process.
export HVD_RESTART=false
# Tests wait for what single workers and agents do, which is in the log at the level debug.
export HVD_LOG_LEVEL=info,job:debug HVD_LOG_TIME=utc

say_line() { printf '%s\n' "$*"; }

# ---- what is there ---------------------------------------------------------------------------------

# Processes that this test has started, under any parent; all, or of those the ones whose
# environment has a line that begins so.
marked() {
  local file pid
  grep -lsaF "BODY_TEST=$folder" /proc/[0-9]*/environ | while read -r file; do
    pid=${file#/proc/}
    pid=${pid%/environ}
    if [ $# = 0 ] || tr '\0' '\n' 2>/dev/null <"$file" | grep "^$1" >/dev/null; then echo "$pid"; fi
  done
}

# Processes of this test that have lost our mark; slurm.sh knows some.
unmarked() { :; }

# The workers of this job, or of one host of it, by their environment: HVD_HOST=127.0.0.2. They are
# $trainer; a shell that one of them has started is not.
workers() {
  local pid name=${trainer##*/}
  for pid in $(marked "${1:-HVD_INCARNATION=}"); do
    if [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = "${name:0:15}" ]; then echo "$pid"; fi
  done
}

variable() { tr '\0' '\n' <"/proc/$1/environ" 2>/dev/null | sed -n "s/^$2=//p"; }
parent() { sed -n 's/^PPid:[[:space:]]*//p' "/proc/$1/status" 2>/dev/null; }
is_alive() { kill -0 "$1" 2>/dev/null; }

# The agent of a host is the parent of its workers. In $agent.
find_agent() {
  local worker
  worker=$(workers "HVD_HOST=$1" | head -n 1)
  [ -n "$worker" ] || die "no worker on $1"
  agent=$(parent "$worker")
  [ -n "$agent" ] || die "the worker $worker on $1 is gone"
}

show_process() {
  printf '  %s (parent %s, %s): %s\n' "$1" "$(parent "$1")" \
    "$(sed -n 's/^State:[[:space:]]*//p' "/proc/$1/status" 2>/dev/null)" \
    "$(tr '\0' ' ' <"/proc/$1/cmdline" 2>/dev/null)"
}

# ---- ends ------------------------------------------------------------------------------------------

die() {
  local pid log
  trap - EXIT
  say_line "FAILED: $*"
  for log in "$err" "$state"/agents/*.log; do
    [ -s "$log" ] || continue
    say_line "---- $log (the end of it)"
    tail -n 40 "$log"
  done
  if [ -f "$out" ] && [ -s "$out" ]; then
    say_line "---- $out (the end of it)"
    tail -n 10 "$out" | cut -c 1-300
  fi
  say_line '---- processes'
  for pid in $(marked; unmarked); do show_process "$pid"; done
  clean_up
  exit 1
}

# By id, and only what is of this test; for as long as something still starts more.
clean_up() {
  local pid left
  stop_hearing
  for pid in "${helpers[@]}"; do kill "$pid" 2>/dev/null; done
  for _ in 1 2 3 4 5; do
    left=$(marked; unmarked)
    [ -n "$left" ] || break
    for pid in $left; do kill -KILL "$pid" 2>/dev/null; done
    for pid in $left; do timeout 10 tail -s $NAP -f --pid="$pid" /dev/null; done
  done
  if [ -n "${BODY_KEEP:-}" ]; then say_line "kept: $folder"; else rm -rf "$folder"; fi
}

# skip REASON: ctest is told so by 77.
skip() {
  say_line "skipped: $*"
  exit 77
}

test_begin() {
  elastic=$(realpath "$1")
  trainer=$(realpath "$2")
  folder=$(mktemp -d "${TMPDIR:-/tmp}/body-XXXXXX")
  trap clean_up EXIT
  trap 'exit 130' INT TERM
  cd "$folder" || exit 1
  mkdir home tmp
  export HOME=$folder/home TMPDIR=$folder/tmp
  new_job
}

# Another name and another state directory.
new_job() {
  stop_hearing
  jobs_made=$((jobs_made + 1))
  job=body-$$-$jobs_made
  state=$folder/$job
  say=$folder/$job.say
  out=$folder/$job.out
  err=$folder/$job.err
  go=$folder/$job.go # there when the test has done to the job all that it means to do
  : >"$say"
  round=0
}

# serve NAME PYTHON PROGRAM: a server in Python, until the test ends; without our mark, as it outlives a job that loses all
# its processes. In $address: its address, which it writes to a file when it is ready.
serve() {
  local name=$1 pid
  "$2" "$3" 127.0.0.1 "$folder/$name.url" >"$folder/$name.log" 2>&1 </dev/null &
  pid=$!
  helpers+=("$pid")
  await_true "the address of the server $name" serves "$name" "$pid"
  # shellcheck disable=SC2034 # for the scripts
  address=$(cat "$folder/$name.url")
}

serves() {
  is_alive "$2" || die "the server $1 does not start: $(cat "$folder/$1.log")"
  [ -s "$folder/$1.url" ]
}

# ---- the driver ------------------------------------------------------------------------------------

# start WORDS...: in the background, of this job; what it prints is appended. For limits that suit
# a test they stand before, so that WORDS may say otherwise.
start() {
  BODY_TEST=$folder "$elastic" --job "$job" --state-dir "$state" --discovery-interval 100ms \
    --blacklist-cooldown-range 0 0 --kill-grace 2s --gather 1s "$@" \
    >>"$out" 2>>"$err" </dev/null &
  driver=$!
}

# ask VERB WORDS...: what an operator says.
ask() {
  local verb=$1
  shift
  BODY_TEST=$folder timeout "$PATIENCE" "$elastic" "$verb" --state-dir "$state" "$@"
}

# await_end PID [SECONDS]: until that process is gone.
await_end() {
  timeout "${2:-$PATIENCE}" tail -s $NAP -f --pid="$1" /dev/null
}

# await_true WHAT COMMAND...: until the command succeeds. WHAT says for what the test waits.
await_true() {
  local what=$1 until=$((SECONDS + PATIENCE))
  shift
  until "$@"; do
    [ $SECONDS -lt $until ] || die "$what: it did not come"
    timeout $NAP tail -f /dev/null
  done
}

# Its exit code is in $code. bash has something to say of those that were killed: not here.
await_driver() {
  { await_end "$driver"; } 2>/dev/null || die "the driver ($driver) does not end"
  { wait "$driver"; } 2>/dev/null
  code=$?
}

# kill_driver: at once.
kill_driver() {
  kill -KILL "$driver"
  await_driver
}

# lose_all: driver, agents and workers are killed at once, so that no process is left that could start another one. $killed:
# when, in microseconds.
lose_all() {
  local all pid
  mapfile -t all < <(marked)
  # shellcheck disable=SC2034 # for the scripts
  killed=${EPOCHREALTIME/[.,]/}
  kill -KILL "${all[@]}" 2>/dev/null
  await_driver
  for pid in $(marked); do kill -KILL "$pid" 2>/dev/null; await_end "$pid"; done
}

# await FILE REGEX [COUNT]: until so many of its lines match.
await() {
  local file=$1 regex=$2 count=${3:-1}
  [ -e "$file" ] || : >>"$file"
  timeout "$PATIENCE" tail -n +1 -s $NAP -f "$file" |
    grep -E -m "$count" -- "$regex" >"$folder/found" || true
  [ "$(wc -l <"$folder/found")" -ge "$count" ] ||
    die "$count times '$regex' in $(basename "$file"): it did not come"
}

# await_or_end FILE REGEX COUNT: the same while the driver lives; false if it has ended before.
await_or_end() {
  [ -e "$1" ] || : >>"$1"
  timeout "$PATIENCE" tail -n +1 -s $NAP -f --pid="$driver" "$1" |
    grep -E -m "$3" -- "$2" >"$folder/found" || true
  [ "$(wc -l <"$folder/found")" -ge "$3" ] && return
  ! is_alive "$driver" || die "$3 times '$2' in $(basename "$1"): it did not come"
  return 1
}

# await_after FILE REGEX COUNT LATER: until LATER is in a line after the COUNTth one with REGEX.
await_after() {
  local line count=$3
  timeout "$PATIENCE" tail -n +1 -s $NAP -f "$1" |
    while read -r line; do
      if [ "$count" -le 0 ] && [[ $line =~ $4 ]]; then say_line "$line" && break; fi
      if [[ $line =~ $2 ]]; then count=$((count - 1)); fi
    done >"$folder/found"
  [ -s "$folder/found" ] || die "'$4' after $3 times '$2' in $(basename "$1"): it did not come"
}

# finish CODE: the driver ends with that, and nothing of the job is left.
finish() {
  : >"$go"
  await_driver
  [ "$code" = "$1" ] || die "the driver's exit code is $code, not $1"
  nothing_left
}

# ---- rounds, as the workers see them -----------------------------------------------------------------

stop_hearing() {
  [ -z "$saying" ] || exec {saying}<&-
  [ -z "$say_reader" ] || kill "$say_reader" 2>/dev/null
  saying='' say_reader=''
}

# await_round SIZE [INCARNATION]: until all SIZE members of a round above $round have entered it, and that
# worker is none of them; $round is that one then. Every line of the trainers' is looked at once.
await_round() {
  local incarnation number rank size _
  if [ -z "$saying" ]; then
    exec {saying}< <(exec tail -n +1 -s $NAP -f "$say")
    say_reader=$!
    declare -gA entered=()
  fi
  while read -r -t "$PATIENCE" -u "$saying" incarnation number rank size _; do
    if [ "$size" != "$1" ] || [ "$number" -le "$round" ]; then continue; fi
    entered[$number]=$((${entered[$number]:-0} + 1))
    [ "$incarnation" != "${2:-}" ] || entered[$number]=-$size
    : "$rank"
    if [ "${entered[$number]}" -ge "$size" ]; then
      unset 'entered[$number]'
      round=$number
      return
    fi
  done
  die "no round of $1 workers after round $round"
}

# ---- afterwards ------------------------------------------------------------------------------------

# no_sockets [COMMAND...]: until the job has none, as that command finds it. A process that ends gives up its memory,
# and with it our mark, before its sockets.
# shellcheck disable=SC2120 # networks.sh gives a command
no_sockets() {
  local left until=$((SECONDS + PATIENCE))
  while left=$("$@" grep -F "$job" /proc/net/unix) && [ -n "$left" ]; do
    [ $SECONDS -lt $until ] || die "a socket of $job is left: $left"
    timeout $NAP tail -f /dev/null
  done
}

# No process, no socket, no file but those that are to be there. Ends take a moment: processes are
# waited for, also those that one of them has started meanwhile. No file may lie outside the state directory.
nothing_left() {
  local pid left until=$((SECONDS + PATIENCE))
  while left=$(marked; unmarked); [ -n "$left" ]; do
    [ $SECONDS -lt $until ] || die "left running after $job: $left"
    for pid in $left; do await_end "$pid" || true; done
  done
  # shellcheck disable=SC2119
  no_sockets
  left=$(find "$folder/home" "$folder/tmp" ! -type d)
  [ -z "$left" ] || die "files outside of the state directory: $left"
  [ ! -S "$state/control" ] || die "$state/control is left"
}
