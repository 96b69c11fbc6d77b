# shellcheck shell=bash disable=SC2154
# For tests of command lines, after lib.sh: each is run as a job of its own, and how it ends is compared.
#
#     ends 2 'not supported here: ' -np 2 --mpi true
#     all_ended

faults=0

# shown TEXT: the driver of the last job has said so.
shown() {
  grep -qF -- "$1" last.err && return
  say_line "$words: the driver does not say '$1':"
  cat last.err
  faults=$((faults + 1))
}

# ends CODE TEXT WORDS...: the driver ends so, and says TEXT. Variables may stand before the call.
ends() {
  local want=$1 text=$2
  shift 2
  words=$*
  start "$@"
  await_driver
  cp "$err" last.err
  if [ "$code" != "$want" ]; then
    say_line "$words: exit code $code, not $want:"
    cat last.err
    faults=$((faults + 1))
  elif [ -n "$text" ]; then
    shown "$text"
  fi
  nothing_left
  new_job
}

# all_ended: as they were to end.
all_ended() { [ $faults = 0 ] || die "$faults of the command lines did otherwise"; }
