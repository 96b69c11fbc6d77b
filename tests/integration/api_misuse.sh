#!/usr/bin/env bash
# Programs that use the library as no program should: each call does what hvd.h says, alone and as one worker
# of two, and the other one comes to its end.
#
#     api_misuse.sh ELASTIC API-MISUSE [NAME...]
. "$(dirname "$0")/../shell/lib.sh"
test_begin "$@"
shift 2

# 8 GiB take their time, and are committed only when asked for by name.
has_gib() { [ "$(awk '/^MemAvailable/ { print int($2 / 1048576) }' /proc/meminfo)" -ge "$1" ]; }

alone() {
  case $1 in
    others-incarnation | is-second | second-process | no-descriptor) return ;; # there is no agent
    eight-gib) has_gib 12 || { say_line "  skipped: 12 GiB of free memory are not there" && return; } ;;
  esac
  timeout "$PATIENCE" "$trainer" "$1" >>"$out" 2>>"$err" </dev/null || die "alone: exit code $?"
}

# Two workers: a file decides which one makes the call. It ends with 0 when all is as it should be, and then
# for the driver it has failed or finished, as its training has.
beside() {
  case $1 in
    incarnation-alone | is-second | eight-gib | more-than-all | too-many-entries) return ;;
    small-files) return ;; # the agent's limit counts: agent_limits
  esac
  start -np 2 --min-np 1 -H 127.0.0.1:2 -- "$trainer" "$1" "$folder/$job.misuse"
  await_driver
  [ "$code" = 0 ] || die "beside a plain worker: the driver's exit code is $code"
  ! grep -q 'api_misuse .*: line' "$out" "$err" || die 'not as it should be'
  [ -e "$folder/$job.misuse" ] || die 'no worker made the call'
  nothing_left
}

names=${*:-$("$trainer" | awk '$1 != "eight-gib" { print $1 }')}
for name in $names; do
  say_line "$name"
  [ -n "${SKIP_ALONE:-}" ] || alone "$name"
  beside "$name"
  new_job
done
