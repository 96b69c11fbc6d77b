#!/usr/bin/env bash
# The transformer is trained by SIZE workers, of whom one at a time is killed with SIGKILL, TIMES times, at any
# moment. The loss of each step is that of gpt on the CPU in peace, no sample is used twice or left out, and in
# the end all have the same parameters. JOB in the environment: words for hvd-elastic.
#
#     kills.sh ELASTIC PROGRAM GPT AUDIT TIMES SIZE WORD...
. "$(dirname "$0")/../shell/lib.sh"
gpt=$(realpath "$3")
audit=$(realpath "$4")
test_begin "$@"
times=$5
size=$6
words=("${@:7}")
read -ra job_words <<<"${JOB:-}"
seed=${SEED:-$$}
RANDOM=$seed
say_line "seed $seed"

EVERY=${EVERY:-20} # steps from one line of rank 0 to the next
PATIENT=8          # lines at most from one death to the next: it waits for as many that all train again
MOST=20            # times as many steps as at first: no machine is so busy
steps=$((EVERY * (PATIENT * times + 3)))
most=$((MOST * steps))

# await_line: another line of rank 0 than those that were there; whether all train then is in $full. False when the
# training is over.
await_line() {
  await_or_end "$out" '] step [0-9]+,' $((lines + 1)) || return
  lines=$(grep -cE '] step [0-9]+,' "$out")
  full=
  if grep -E '] step [0-9]+,' "$out" | tail -n 1 | grep -q ", size $size:"; then full=1; fi
}

# All kills; false when the training has made no further step after one of them. On a busy machine it may be over too
# early, and is made again with twice as many steps.
kills() {
  killed=0 of_full=0 lines=0
  rm -rf samples
  mkdir samples
  "$gpt" "${words[@]}" --steps $steps --curve "$folder/curve" >/dev/null || die 'gpt by itself'
  HVD_SAMPLE_LOG=$folder/samples start -np "$size" --min-np 1 --max-np "$size" -H "127.0.0.1:$size" \
    --stall-shutdown 60s "${job_words[@]}" -- "$trainer" "${words[@]}" --steps $steps --print-every "$EVERY" \
    --compare "$folder/curve"
  while [ $killed -lt "$times" ]; do
    for ((i = 0; i < PATIENT; i++)); do
      await_line || return
      [ -z "$full" ] || break
    done
    pid=$(workers | shuf -n 1 --random-source=<(yes "$RANDOM"))
    if [ -n "$pid" ] && kill -KILL "$pid" 2>/dev/null; then
      killed=$((killed + 1))
      of_full=$((of_full + ${full:-0}))
    fi
    lines=$(grep -cE '] step [0-9]+,' "$out")
  done
  await_line
}

until kills; do
  say_line "$steps steps were over after $killed kills"
  await_driver
  nothing_left
  steps=$((2 * steps))
  [ $steps -le $most ] || die "seed $seed: the training is over before the kills"
  new_job
done
finish 0

[ "$(grep -c 'final params' "$out")" -ge 1 ] || die "seed $seed: nobody has come to the end"
[ "$(sed -n 's/.*final params //p' "$out" | sort -u | wc -l)" = 1 ] ||
  die "seed $seed: the parameters differ: $(grep 'final params' "$out")"
"$audit" samples >audited || die "seed $seed: $(cat audited)"
compared=$(sed -n 's/.*\] \(.* compared.*\)/\1/p' "$out")
[ -n "$compared" ] || die "seed $seed: nobody has compared the curve"
say_line "$killed killed in $steps steps, $of_full when all trained; $(grep -c 'final params' "$out") of $size with the same parameters at the end;" \
  "$compared; $(tail -n 1 audited)"
