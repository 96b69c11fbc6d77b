#!/usr/bin/env bash
# One worker of four does wrong once, at every place where it can, in every way: the job goes on to its
# end, every worker ends with the same and the right sum, nothing is left.
#
#     faults.sh ELASTIC TRAINER [PLACE:WRONG...]
. "$(dirname "$0")/../shell/lib.sh"
. "$(dirname "$0")/../shell/train.sh"
test_begin "$@"
shift 2

# The one that does wrong has rank 1. Some places are reached only when another has died before.
case_of() { # PLACE WRONG
  local words=()
  case $1 in
    step | commit | check) words=(--at 20) ;;
    async) words=(--at 20 --async) ;;
    ragged) words=(--at 20 --ragged) ;;
    open) words=(--at 20 --regroup) ;;
  esac
  case $1:$2 in
    init:hang | built:hang) limits=(--start-timeout 10s) ;;
    *:hang) limits=(--stall-warning 1s --stall-shutdown 3s) ;;
    *) limits=() ;;
  esac
  train_four --steps 150 --where "$1" --wrong "$2" --rank 1 --once "$folder/$job.once" "${words[@]}"
  case $1 in
    reset | load)
      await_round 4
      kill_rank 3
      ;;
  esac
  finish 0
  grep -qE -e "${said[$2]}" "$err" || die "it is not said: ${said[$2]}"
  all_right 150
}

declare -A said=([die]='killed by signal 9' [hang]='has not moved|have waited for the worker|not ready|did not' [fail]='-77|has no memory|belongs"? returned')

# Where there is nothing to return to, nothing can fail.
all_cases() {
  local place
  for place in init built step commit async check ragged open reset load; do
    say_line "$place:die" "$place:hang"
    case $place in init | built) ;; *) say_line "$place:fail" ;; esac
  done
}

cases=${*:-$(all_cases)}
for case_now in $cases; do
  say_line "$case_now"
  case_of "${case_now%:*}" "${case_now#*:}"
  new_job
done
