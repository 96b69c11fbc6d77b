#!/usr/bin/env bash
# Plain commands in a job of a fixed size (--max-np is -np): always as many as -np, with the ranks of the
# first slots of the list and one HVD_SIZE. A command that is killed is started elsewhere, as the same rank.
#
#     fixed_size.sh ELASTIC TRAINER [RUNS]
. "$(dirname "$0")/../shell/lib.sh"
test_begin "$@"
runs=${3:-5}

for i in 1 2 3; do printf '127.0.0.%s slots=2\n' $i; done >hosts

# Each command adds its line to this file.
# shellcheck disable=SC2016 # the worker's shell is to see it
script='echo "$HVD_HOST:$HVD_SLOT $HVD_RANK of $HVD_SIZE $HOROVOD_RANK of $HOROVOD_SIZE" >>"$0"'

# has_run NUMBER WORDS...: the lines are these, in any order.
has_run() {
  local file=$1
  shift
  printf '%s\n' "$@" | cmp -s - <(sort "$file") || die "not the right commands: $(sort "$file")"
}

for ((run = 1; run <= runs; run++)); do
  new_job
  start -np 2 -hostfile hosts --log-level warning sh -c "$script" "$folder/ran"
  finish 0
  has_run ran '127.0.0.1:0 0 of 2 0 of 2' '127.0.0.1:1 1 of 2 1 of 2'
  rm ran
done
say_line "$runs runs of -np 2 with six slots: always two commands, ranks 0 and 1 on the first host"

# three ranks: the second host comes first as often as it likes
for ((run = 1; run <= runs; run++)); do
  new_job
  start -np 3 -H 127.0.0.1:1,127.0.0.2:4,127.0.0.3:4 --log-level warning sh -c "$script" "$folder/ran"
  finish 0
  has_run ran '127.0.0.1:0 0 of 3 0 of 3' '127.0.0.2:0 1 of 3 1 of 3' '127.0.0.2:1 2 of 3 2 of 3'
  rm ran
done

# Rank 0 is killed: its successor is on another host, has its rank, and the job ends well.
new_job
mkfifo gate
# shellcheck disable=SC2016 # the worker's shell is to see it
start -np 2 -hostfile hosts --blacklist-cooldown-range 10m 10m --env GATE="$folder/gate" \
  sh -c "$script"'; [ "$HVD_INCARNATION" != 1 ] || kill -9 $$; [ "$HVD_RANK" != 1 ] || read -r go <"$GATE"' "$folder/ran"
await "$folder/ran" '127.0.0.2:0 0 of 2'
echo go >gate
finish 0
has_run ran '127.0.0.1:0 0 of 2 0 of 2' '127.0.0.1:1 1 of 2 1 of 2' '127.0.0.2:0 0 of 2 0 of 2'

# Without -np the host file says it; a list that is too small is refused at once.
new_job
rm ran
start -hostfile hosts --log-level warning sh -c "$script" "$folder/ran"
finish 0
[ "$(grep -c 'of 6 ' ran)" = 6 ] || die "without -np: not in six slots: $(cat ran)"
new_job
start -np 4 -H localhost:2 true
finish 2
grep -q -- '-np: 4 is more than the slots of --hosts, 2' "$err" || die "not refused: $(cat "$err")"

# The same with a size that may grow: every slot is used.
new_job
rm ran
start -np 2 --max-np unlimited -H 127.0.0.1:6 --log-level warning sh -c "$script" "$folder/ran"
finish 0
[ "$(wc -l <ran)" = 6 ] || die "--max-np unlimited: not in six slots: $(cat ran)"
