# shellcheck shell=bash disable=SC2154
# For tests of the library in real jobs, after lib.sh: a job of sum_trainer, and what they come to.

# Time limits of the driver that end a hang which is part of the test. Without such a hang there are none: a worker that
# the machine holds up for a while would be taken for one that hangs.
limits=()

# train_four WORDS...: four of sum_trainer on two hosts, that train with WORDS.
train_four() {
  final=$folder/$job.final
  made=$folder/$job.made
  start -np 4 --min-np 2 -H 127.0.0.1:2,127.0.0.2:2 "${limits[@]}" -- \
    "$trainer" --step-ms 2 --say "$say" --made "$made" --final "$final" --slow-until "$go" "$@"
}

# kill_rank RANK: the worker that was started with it, when all are the first of their slots.
kill_rank() {
  local pid
  for pid in $(workers); do
    [ "$(variable "$pid" HVD_RANK)" != "$1" ] || kill -KILL "$pid"
  done
}

# kill_slots HOST SLOT [HOST SLOT...]: by the last number of the host's address; $hit: so many were there.
kill_slots() {
  local pid pids=()
  while [ $# -gt 0 ]; do
    for pid in $(workers "HVD_HOST=127.0.0.$1"); do
      [ "$(variable "$pid" HVD_SLOT)" != "$2" ] || pids+=("$pid")
    done
    shift 2
  done
  # shellcheck disable=SC2034 # for the scripts
  hit=${#pids[@]}
  kill -KILL "${pids[@]}" 2>/dev/null || true # they may have come to their end
}

# await_step STEP: until a rank has made that step.
await_step() { await "$made" "^[0-9]+ [0-9]+ $1 "; }

# await_steps COUNT: until so many new steps have been made.
await_steps() { await_step $(($(awk '$3 > last { last = $3 } END { print last + 0 }' "$made") + $1)); }

# all_right STEPS: who has come to the end has made all steps, and has the sum of 1 to STEPS.
all_right() {
  local right="$1 $(($1 * ($1 + 1) / 2))"
  [ -s "$final" ] || die 'nobody came to the end'
  if grep -v " $right\$" "$final" >"$folder/found"; then
    die "an end that is not '$right': $(cat "$folder/found")"
  fi
}

# No step is left out, and none but those after the last commit is made again. A worker that leaves may say its
# last step when the others are in the next round.
no_step_lost() {
  awk '$3 > step + 1 || $1 >= round && $3 < step - 1 {
      print "step " $3 " in round " $1 ", after step " step " in round " round; exit 1 }
    $1 > round { round = $1 }
    $3 > step { step = $3 }' "$made" >wrong || die "$(cat wrong)"
}
