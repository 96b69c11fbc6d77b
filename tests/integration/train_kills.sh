#!/usr/bin/env bash
# Workers of a real training are killed at random moments, rank 0 too, two at once, and while the others
# recover: the job lives, what a round has trained on is never lost, all members of a round begin it with the
# same step, and nothing is left behind.
#
#     train_kills.sh ELASTIC COUNT TIMES [SEED]
. "$(dirname "$0")/../shell/lib.sh"
test_begin "$@"
times=$3
seed=${4:-$$}
RANDOM=$seed
say_line "seed $seed"

start -np 4 --min-np 1 -H 127.0.0.1:2,127.0.0.2:2 --stall-shutdown 20s \
  "$trainer" "$say" "$folder/stop"
await_round 4

# kill_some HOW-MANY DELAY: any, rank 0 as often as others; with the delay between them.
killed=0
kill_some() {
  local pids pid
  mapfile -t pids < <(workers | shuf -n "$1" --random-source=<(yes "$RANDOM"))
  for pid in "${pids[@]}"; do
    kill -KILL "$pid" 2>/dev/null && killed=$((killed + 1))
    [ "$2" = 0 ] || timeout "$2" tail -f /dev/null
  done
}

while [ $killed -lt "$times" ]; do
  case $((RANDOM % 4)) in
    0) kill_some 2 0 ;;
    1) kill_some 2 "0.0$((1 + RANDOM % 4))" ;; # the second while the others recover from the first
    *) kill_some 1 0 ;;
  esac
  is_alive "$driver" || die "seed $seed: the job is over after $killed kills"
  await_round 4
done
: >stop
finish 0

[ "$(grep -c 'counted' "$out")" -ge 1 ] || die "seed $seed: nobody has come to the end"
[ "$(sed -n 's/.*counted //p' "$out" | sort -u | wc -l)" = 1 ] || die "seed $seed: not all have counted the same"
# A worker that is killed may have been alone with its last commit; then the others make that step again. But what
# all members of a round have begun with is never gone back behind.
sed -nE 's/.*round ([0-9]+): all [0-9]+ train.*/\1/p' "$err" >trained
sed -nE 's/.*round ([0-9]+) begins at ([0-9]+)$/\1 \2/p' "$out" | sort -n -k 1,1 -k 2,2 >begun
awk 'FNR == NR { trained[$1] = 1; next }
     $1 == round && $2 != here { print "round " $1 " begins at " here " and at " $2; wrong = 1; exit }
     { round = $1; here = $2 }
     here < step { print "round " round " begins at " here ", after " step " in round " by; wrong = 1; exit }
     (round in trained) { step = here; by = round }
     END { exit wrong }' trained begun >lost || die "seed $seed: $(cat lost)"
say_line "$killed workers killed; the last round was $round; $(sed -n 's/.*counted //p' "$out" | head -n 1) steps counted"
