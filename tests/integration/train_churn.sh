#!/usr/bin/env bash
# A real training, and to it by chance what happens to one: workers are killed, hosts join, leave and are
# drained. Then all ranks have the same parameters, every sample of each epoch was used exactly once, and the
# loss of each step is that of the same training in peace, within what the order of a sum makes.
#
#     train_churn.sh ELASTIC PROGRAM AUDIT EVENTS SEED [WORD...]
#
# PROGRAM is examples/mlp or examples/gpt, with these words. Each event follows on further steps. On a busy machine a
# training may be over before the last event has had its effect: then it is made again, with twice as many steps.
. "$(dirname "$0")/../shell/lib.sh"
audit=$(realpath "$3")
test_begin "$@"
events=$4
seed=$5
words=("${@:6}")
[ "$seed" != 0 ] || seed=$$
RANDOM=$seed
say_line "seed $seed"

EVERY=40          # steps from one event to the next
TOLERANCE=1e-6    # of the loss of a step: sums of double in another order
MOST=20           # times as many steps as at first: no machine is so busy
steps=$((EVERY * (events + 8)))
most=$((MOST * steps))

list_hosts() {
  local i
  for i in 0 1 2 3; do [ "${listed[i]}" = 0 ] || echo "127.0.0.$((i + 1)):2"; done >hosts.new
  mv hosts.new hosts
}

begin() { # CURVE WORDS...
  local curve=$1
  shift
  start -np 4 --min-np 1 --max-np 8 --hostfile hosts --stall-shutdown 20s "$@" -- "$trainer" --steps "$steps" \
    --print-every "$EVERY" --curve "$folder/$curve" "${words[@]}"
}

# ---- the events ------------------------------------------------------------------------------------

kill_workers() { # HOW-MANY
  local pids pid
  mapfile -t pids < <(workers | shuf -n "$1" --random-source=<(yes "$RANDOM"))
  for pid in "${pids[@]}"; do kill -KILL "$pid" 2>/dev/null; done
  deed="$1 killed"
}

kill_first() {
  local pid
  for pid in $(workers); do
    [ "$(variable "$pid" HVD_RANK)" != 0 ] || kill -KILL "$pid" 2>/dev/null
  done
  deed='rank 0 killed'
}

# One host of those that are not listed, or listed; at least two stay.
change_hosts() { # 1: one joins; 0: one goes
  local i=$((RANDOM % 4)) count=0 host
  for host in "${listed[@]}"; do count=$((count + host)); done
  while [ "${listed[i]}" = "$1" ]; do
    [ "$count" -lt 4 ] || [ "$1" = 0 ] || return 1
    i=$(((i + 1) % 4))
  done
  [ "$1" = 1 ] || [ "$count" -gt 2 ] || return 1
  listed[i]=$1
  list_hosts
  deed="127.0.0.$((i + 1)) $([ "$1" = 1 ] && echo joins || echo goes)"
}

drain_or_undrain() {
  if [ $drained -lt 0 ]; then
    drained=$((1 + RANDOM % 4))
    ask drain "127.0.0.$drained" >/dev/null || drained=-1
    deed='drain'
  else
    ask undrain "127.0.0.$drained" >/dev/null
    drained=-1
    deed='undrain'
  fi
}

happen() {
  case $((RANDOM % 10)) in
    0 | 1 | 2) kill_workers 1 ;;
    3) kill_workers 2 ;;
    4) kill_first ;;
    5 | 6) change_hosts 1 || change_hosts 0 ;;
    7 | 8) change_hosts 0 || change_hosts 1 ;;
    9) drain_or_undrain ;;
  esac
  [ -z "${VERBOSE:-}" ] || say_line "$1: $deed"
}

# ---- in peace, and then not ------------------------------------------------------------------------

peace() {
  listed=(1 1 0 0) # of four hosts of two slots
  drained=-1
  list_hosts
  begin peace
  finish 0
}

# All events; false when the training has made no further step after one of them.
churn() {
  local event told=0
  new_job
  rm -rf samples
  mkdir samples
  HVD_SAMPLE_LOG=$folder/samples begin churn
  for ((event = 1; event <= events; event++)); do
    await_or_end "$out" '] step [0-9]+,' $((told + 1)) || return
    happen "$event"
    told=$(grep -cE '] step [0-9]+,' "$out")
  done
  await_or_end "$out" '] step [0-9]+,' $((told + 1))
}

peace
until churn; do
  say_line "$steps steps were over before $events events"
  await_driver
  nothing_left
  steps=$((2 * steps))
  [ $steps -le $most ] || die "seed $seed: the training is over before the events"
  new_job
  peace
done
finish 0

# ---- what has come of it ---------------------------------------------------------------------------

[ "$(grep -c 'final params' "$out")" -ge 1 ] || die "seed $seed: nobody has come to the end"
[ "$(sed -n 's/.*final params //p' "$out" | sort -u | wc -l)" = 1 ] ||
  die "seed $seed: the parameters differ: $(grep 'final params' "$out")"
"$audit" samples >audited || die "seed $seed: $(cat audited)"
paste -d ' ' peace churn | awk -v tolerance=$TOLERANCE -v steps="$steps" '
  { apart = $2 - $4; if (apart < 0) apart = -apart; if (apart > most) most = apart }
  $1 != NR || $3 != NR || !(apart <= tolerance) { print "step " NR ": " $0; wrong = 1; exit }
  END { if (!wrong) printf "%.1e", most; exit wrong || NR != steps }' >apart ||
  die "seed $seed: the curves of $steps steps are apart: $(cat apart)"
say_line "$events events in $steps steps; $(grep -c 'final params' "$out") ranks with the same parameters," \
  "losses $(cat apart) apart at most; $(tail -n 1 audited)"
