#!/usr/bin/env bash
# Training that goes on while workers fail: several at once, during a recovery, on one host,
# all of them; with state that differs; in order, when a host goes. Each job comes to its end with the
# right sum in every worker.
#
#     many_faults.sh ELASTIC PUPIL [CASE...]
. "$(dirname "$0")/../shell/lib.sh"
. "$(dirname "$0")/../shell/train.sh"
test_begin "$@"
shift 2

steps=400

# The driver reads the file at any moment, so it never sees half of it.
list_hosts() { # HOST...
  printf '%s\n' "$@" >"$folder/hosts.new"
  mv "$folder/hosts.new" "$folder/hosts"
}

end_well() {
  finish 0
  [ -z "${VERBOSE:-}" ] || cat "$err"
  all_right "${1:-$steps}"
}

# Steps are kept: no round begins before a step that a whole round has committed.
two_at_once() {
  train_four --steps $steps
  await_round 4
  kill_slots 1 1 2 0
  await_round 4
  kill_slots 1 0 2 1
  end_well
}

host_at_once() {
  local pids
  train_four --steps $steps
  await_round 4
  mapfile -t pids < <(workers HVD_HOST=127.0.0.2)
  kill -KILL "${pids[@]}"
  end_well
}

# No member of the round lives: the agents have its last commit.
all_at_once() {
  local i pids
  train_four --steps $((2 * steps)) --step-ms 5
  await "$err" 'all 4 train'
  for i in 1 2 3; do
    await_steps 20
    mapfile -t pids < <(workers)
    kill -KILL "${pids[@]}"
    await_round 4
  done
  end_well $((2 * steps))
  [ "$(grep -c 'from commit [0-9]*\.[1-9]' "$err")" -ge 3 ] || die 'a round began anew'
}

# All hosts are taken away by a deadline, and only then there is another: it gets the commit from an agent
# in whose slots no worker is left.
all_others() {
  list_hosts 127.0.0.1:2
  final=$folder/$job.final made=$folder/$job.made
  start -np 2 --min-np 1 --hostfile "$folder/hosts" -- \
    "$trainer" --step-ms 5 --steps $steps --say "$say" --made "$made" --final "$final" --slow-until "$go"
  await "$err" 'all 2 train'
  await_step 20
  ask drain 127.0.0.1 --deadline 200ms >/dev/null || die 'drain'
  await "$err" '0 of --min-np 1'
  list_hosts 127.0.0.2:2
  await "$err" 'from commit [0-9]*\.[0-9]* kept by agents'
  end_well
  if grep -q 'the source has sent nothing' "$err"; then die 'nobody was asked for the commit'; fi
}

# The second one goes while the others recover from the loss of the first. A round that all have entered may
# be lost already: who is to be hit next is there when all train after the last death that was told.
during_recovery() {
  local i
  train_four --steps $((4 * steps)) --step-ms 5
  await "$err" 'all 4 train'
  for ((i = 1; i <= 5; i++)); do
    kill_slots 1 1
    await "$err" 'job: 127.0.0.1:1#[0-9]+: killed' $i
    kill_slots 2 0
    await_after "$err" 'job: 127.0.0.2:0#[0-9]+: killed' $i 'all 4 train'
  done
  end_well $((4 * steps))
}

same_slot() {
  local i
  train_four --steps $((2 * steps)) --step-ms 4
  for ((i = 1; i <= 8; i++)); do
    await_round 4
    kill_slots 2 1
  done
  end_well $((2 * steps))
}

async_commits() {
  local i
  train_four --steps $steps --step-ms 5 --async --state 8
  for ((i = 0; i < 6; i++)); do
    await_round 4
    kill_slots $((1 + i % 2)) $((i / 2 % 2))
  done
  end_well
}

# It is turned away by name, and its successor, which is as the others, is not.
other_state() {
  train_four --steps $steps --other-state --rank 1 --once "$folder/$job.once"
  end_well # though it may have been the first
  grep -q 'one too many' "$err" || die 'the entry that differs is not named'
}

# A loop that returns 0 at any news has not come to its end.
drops_news() {
  train_four --steps $steps --step-ms 5 --drop-news
  await_step 20
  kill_slots 1 1
  await_after "$err" 'job: 127.0.0.1:1#[0-9]+: killed' 1 'all 4 train' # after a round of three, or at once
  end_well
}

# A rank that checks more often is past the agreed check when all others are at it: that is a loss of steps, and
# of nothing else.
extra_checks() {
  list_hosts 127.0.0.1:2
  final=$folder/$job.final
  start -np 2 --min-np 2 --max-np 4 --hostfile "$folder/hosts" --stall-shutdown 3s -- \
    "$trainer" --step-ms 5 --steps $steps --say "$say" --final "$final" --extra-check --rank 1 \
    --once "$folder/$job.once" --slow-until "$go"
  await_round 2
  list_hosts 127.0.0.1:2 127.0.0.2:2
  await_round 4
  end_well
}

second_thread() {
  train_four --steps $steps --two-threads
  await_round 4
  kill_slots 2 1
  end_well
}

# A replicated entry that is not the same everywhere: no rank can say which copy is right, but a joiner is not
# made of two different ones.
lies() {
  train_four --steps $steps --lie --at 20 --rank 1 --once "$folder/$job.once"
  await_round 4
  await_step 40
  kill_slots 2 1
  end_well
}

# The host's workers leave at the agreed check with 0, and no step is made twice.
drained() {
  train_four --steps $steps --step-ms 5
  await_round 4
  ask drain 127.0.0.2 || die "drain: exit code $?"
  await_round 2
  end_well
  if grep -qE 'is revoked|failed' "$err"; then die 'a drain was taken for a failure'; fi
  [ -z "$(cut -d' ' -f3,4 "$made" | sort | uniq -d)" ] || die 'a step was made twice'
  [ "$(grep -c 'exit code 0$' "$err")" = 4 ] || die 'who left did not end with 0'
}

# The joiners need four seconds to build what they train; no rank stops for that.
joins_late() {
  list_hosts 127.0.0.1:2
  final=$folder/$job.final
  start -np 2 --min-np 2 --max-np 4 --hostfile "$folder/hosts" --start-timeout 20s -- \
    "$trainer" --step-ms 5 --steps $((4 * steps)) --boot-ms 4000 --say "$say" --final "$final" --slow-until "$go"
  await_round 2
  await "$err" 'all 2 train'
  list_hosts 127.0.0.1:2 127.0.0.2:2
  await_round 4
  await "$err" 'all 4 train \(switch'
  end_well $((4 * steps))
  if sed -n 's/.*all 4 train (switch \([0-9.]*\)\([mu]*s\):.*/\1 \2/p' "$err" |
    awk '$2 == "s" && $1 >= 2 { slow = 1 } END { exit !slow }'; then
    die "the switch took as long as to boot: $(grep 'all 4 train' "$err")"
  fi
}

# An agent that may have no file of that size, or no descriptor, for the commits of its workers.
agent_limits() {
  local words
  for words in --fsize=65536 --nofile=16; do
    limits_of_agent "$words"
    new_job
  done
}

limits_of_agent() {
  train_four --steps $steps --boot-ms 0
  await_round 4
  find_agent 127.0.0.2
  prlimit --pid "$agent" "$1" || skip 'prlimit is not there'
  kill_slots 2 1
  : >"$go"
  await_driver
  case $code in
    0) all_right $steps ;;
    1) grep -q 'ulimit' "$err" || die 'what is lacking is not said' ;;
    *) die "the driver's exit code is $code" ;;
  esac
  nothing_left
}

# The agent is stopped while a worker says hello; the worker dies; the agent wakes up.
dies_in_hello() {
  local i launched deaths=0
  train_four --steps $((2 * steps)) --step-ms 5
  await "$err" 'all 4 train'
  find_agent 127.0.0.2
  for i in 1 2 3 4; do
    launched=$(grep -c '127.0.0.2:1#[0-9]* is launched' "$err")
    kill_slots 2 1
    deaths=$((deaths + hit))
    await "$err" '127.0.0.2:1#[0-9]* is launched' $((launched + 1))
    kill -STOP "$agent"
    [ "$i" = 1 ] || timeout "0.0$i" tail -f /dev/null
    kill_slots 2 1
    kill -CONT "$agent"
    deaths=$((deaths + hit))
    await_after "$err" 'job: 127.0.0.2:1#[0-9]+: killed' $deaths 'all 4 train'
  done
  end_well $((2 * steps))
}

cases=${*:-two_at_once host_at_once all_at_once all_others during_recovery same_slot async_commits drops_news other_state
  extra_checks second_thread lies drained joins_late agent_limits dies_in_hello}
for case_now in $cases; do
  say_line "$case_now"
  "$case_now"
  new_job
done
