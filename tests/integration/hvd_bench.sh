#!/usr/bin/env bash
# hvd-bench as an operator uses it: alone, in jobs of several workers, while workers are killed and leave, and
# with wrong words.
#
#     hvd_bench.sh ELASTIC HVD-BENCH
. "$(dirname "$0")/../shell/lib.sh"
# shellcheck source=tests/shell/train.sh
. "$(dirname "$0")/../shell/train.sh"
test_begin "$@"
bench=$trainer
two_hosts=127.0.0.1:2,127.0.0.2:2

# expect CODE STREAM TEXT WORDS...: alone, it ends with CODE, and STREAM (said, complained) has TEXT.
expect() {
  local got=0 want=$1 stream=$2 text=$3
  shift 3
  "$bench" "$@" >said 2>complained || got=$?
  [ "$got" = "$want" ] || die "hvd-bench $*: exit code $got, not $want: $(cat said complained)"
  grep -qF -- "$text" "$stream" || die "hvd-bench $*: no '$text' in $stream: $(cat said complained)"
}

# check_json FILE EXPRESSION...: each holds of the one object in FILE, r.
check_json() {
  python3 - "$@" <<'END_OF_PYTHON' || die "$(sed -n '$p' "$1")"
import json, re, sys

texts = [re.sub(r"^\[[^]]*\] ", "", line) for line in open(sys.argv[1]) if "{" in line]
if len(texts) != 1:
    sys.exit(f"{len(texts)} objects, not one")
r = json.loads(texts[0])
for expression in sys.argv[2:]:
    if not eval(expression):
        sys.exit(f"not so: {expression}: {texts[0]}")
END_OF_PYTHON
}

# plain: what the workers have printed, without the names before each line.
plain() { sed -E 's/^\[[^]]*\] ?//' "$out"; }

# iterations FILE: of all rounds in the table of rounds.
iterations() { sed -n '/^samples\/s: /,/^$/p' "$1" | awk '$1 ~ /^[0-9]+$/ { sum += $3 } END { print sum }'; }

# ---- alone -----------------------------------------------------------------------------------------

small='--max-bytes 65536 --repeats 5'
train='train --model-mb 1 --batch 1 --steps 2'
# shellcheck disable=SC2086 # words
{
  expect 0 said '1 worker on 1 host' allreduce $small
  [ "$(grep -cE '^ +(4096|16384|65536) +5 ' said)" = 3 ] || die "not three sizes of five calls: $(cat said)"
  for type in float32 float64 float16 bfloat16; do
    expect 0 said "\"type\":\"$type\"" allreduce --json $small --type $type
    check_json said '[s["bytes"] for s in r["sizes"]] == [4096, 16384, 65536]' \
      'all(0 < s["median_us"] <= s["p99_us"] for s in r["sizes"])'
  done
  expect 0 said '4096' allreduce --min-bytes 4097 --max-bytes 4099 --time 1ms --hvd-alloc
  expect 0 said 'one alone' $train --iterations 3 --layers 1024
  expect 0 said '"one_call":true' $train --iterations 3 --json --one-call
  check_json said 'len(r["rounds"]) == 1' 'r["rounds"][0]["iterations"] == 3' 'r["changes"] == []' \
    'r["model_bytes"] == 1 << 20' 'r["rounds"][0]["least"] <= r["rounds"][0]["samples_per_s"]'
}

# ---- wrong words -----------------------------------------------------------------------------------

expect 0 said 'usage: hvd-bench' --help
expect 0 said '--factor' train --help
expect 0 said 'hvd-bench ' --version
expect 0 said 'commit-every' --list-options
expect 2 complained 'no benchmark; name allreduce or train'
expect 2 complained 'no benchmark; name allreduce or train' --json
expect 2 complained 'alreduce: not a benchmark; name allreduce or train' alreduce
expect 2 complained '--factor: belongs to allreduce, not to train; leave it out' train --factor 3
expect 2 complained '--layers: belongs to train, not to allreduce; leave it out' allreduce --layers 3
expect 2 complained 'x: one word too many' train x
expect 2 complained 'did you mean --layers?' train --layrs 3
expect 2 complained '--layers: "0": N must be between 1 and 1024' train --layers 0
expect 2 complained '--max-bytes: "17179869185"' allreduce --max-bytes 17179869185
expect 2 complained '--type: "int3": must be one of' allreduce --type int3
expect 2 complained '--min-bytes 9000 is more than --max-bytes 5000' allreduce --min-bytes 9000 --max-bytes 5000
expect 2 complained '--repeats and --time: give one or the other' allreduce --repeats 2 --time 1s
HVD_AGENT=/nowhere HVD_INCARNATION=1 expect 1 complained 'hvd-bench: ' train

code=0
# shellcheck disable=SC2086
"$bench" allreduce $small >/dev/full 2>complained || code=$?
if [ $code != 4 ] || ! grep -qE 'output: (No space left on device|an earlier write has failed)$' complained; then
  die "a full standard output goes unnoticed: exit code $code"
fi

start -np 2 -H 127.0.0.1:2 "$bench" train --layers 0
finish 1
grep -qF -- '--layers: "0"' "$out" "$err" || die 'the job does not say what is wrong with the words'

# ---- several workers -------------------------------------------------------------------------------

new_job
# shellcheck disable=SC2086
start -np 4 -H $two_hosts "$bench" allreduce --json $small
finish 0
check_json "$out" 'len(r["sizes"]) == 3' 'all(s["workers"] == 4 for s in r["sizes"])' \
  'all(abs(s["bus_bytes_per_s"] - 1.5 * s["algorithm_bytes_per_s"]) < 3 for s in r["sizes"])'

new_job
# shellcheck disable=SC2086
start -np 4 -H $two_hosts "$bench" $train --iterations 3 --json
finish 0
check_json "$out" 'len(r["rounds"]) == 1' 'r["rounds"][0]["workers"] == 4' 'r["rounds"][0]["hosts"] == 2' \
  'r["rounds"][0]["iterations"] == 3' 'r["rounds"][0]["one_alone"] > 0' 'r["rounds"][0]["all_apart"] > 0'

# ---- changes ---------------------------------------------------------------------------------------

# again: the benchmark was over before the change had its effect, as may happen on a busy machine. A new job, which is to
# be $longer times as long.
again() {
  say_line "the benchmark was over too early"
  await_driver
  nothing_left
  longer=$((2 * longer))
  [ $longer -le 32 ] || die 'no benchmark is long enough'
  new_job
}

# bench_rows RANKS HOSTS: a job of $rows iterations, of which some are over now.
bench_rows() {
  rows=$((200 * longer))
  start -np "$1" --min-np 2 -H "$2" "$bench" train --model-mb 1 --compute-ms 4 --steps 4 --iterations $rows
  await "$out" '^\[0 [^]]*\] +3 '
}

# Rank 0 is killed between two rows. Another rank goes on with the table: no row is lost, none is there twice.
kill_the_first() {
  bench_rows 4 $two_hosts
  kill_rank 0
  await_or_end "$out" ': a worker was lost; ' 1
}
new_job
longer=1
until kill_the_first; do again; done
finish 0
plain >table
[ "$(iterations table)" = $rows ] || die "the rounds have $(iterations table) iterations, not $rows: $(tail -n 20 table)"
sed -n '/^what each change of the workers cost/,$p' table >cost
grep -qE '^ +[0-9]+ +a worker was lost +4 -> [1-4] +[0-9]+ ' cost || die "the table has no lost worker: $(cat cost)"
grep -qE '^round [0-9]+: [1-4] workers? on [12] hosts?: a worker was lost; ([0-9]|10) steps? lost, no step for [0-9.]+ ms$' table ||
  die "the loss of a worker is not told at once: $(grep '^round' table)"
# a row of the dead rank 0 may have been printed before the commit that failed with it
[ "$(awk '$1 ~ /^[0-9]+$/ && NF == 5 { seen[$1] } END { print length(seen) }' table)" = $rows ] ||
  die 'not every iteration has been shown'

# A worker is killed, comes back, and a host is drained; the job is stopped.
new_job
start -np 4 --min-np 2 -H $two_hosts "$bench" train --model-mb 1 --compute-ms 20 --steps 4 --iterations 10000
await "$out" '^\[0 [^]]*\] +3 '
kill_rank 3
await "$out" 'round [0-9]+: [0-9] workers? .*: a worker was lost; '
# its successor joins a round of three, or is ready before the others have stopped
await "$out" 'round [0-9]+: 4 workers on 2 hosts: (workers joined; 0|a worker was lost; [0-9]+) steps? lost, '
ask drain 127.0.0.2 || die "drain: exit code $?"
await "$out" 'round [0-9]+: 2 workers on 1 host: workers left; 0 steps lost, '
ask stop || die "stop: exit code $?"
finish 143

# All workers are killed at once: their agents have the rows, and no worker is left that knows the cost.
kill_all() {
  local pids
  bench_rows 2 127.0.0.1:1,127.0.0.2:1
  mapfile -t pids < <(workers)
  # a stopped worker does not go on without the one that is killed first
  kill -STOP "${pids[@]}" 2>/dev/null && kill -KILL "${pids[@]}"
  await_or_end "$out" 'all workers were lost' 1
}
new_job
longer=1
until kill_all; do again; done
finish 0
plain >table
grep -q '^round [0-9]*: 2 workers on 2 hosts: all workers were lost, and with them the cost$' table ||
  die "the loss of all workers is not told: $(grep '^round' table)"
grep -qE '^ +[0-9]+ +all workers were lost +2 -> 2 +- +-' table || die "a cost that no worker knows: $(tail -n 4 table)"
[ "$(iterations table)" = $rows ] || die "the rounds have $(iterations table) iterations, not $rows"

# In the midst of a size of allreduce: that size is measured again, with the others.
kill_in_a_size() {
  start -np 4 --min-np 2 -H $two_hosts "$bench" allreduce --min-bytes 4096 --max-bytes 16384 --time $((2 * longer))s
  await "$out" '^\[0 [^]]*\] round 1: 4 workers on 2 hosts$'
  kill_rank 1
  await_or_end "$out" ': a worker was lost; ' 1
}
new_job
longer=1
until kill_in_a_size; do again; done
finish 0
plain >table
# a row may have been printed before the commit that failed with the worker
[ "$(awk '$1 ~ /^(4096|16384)$/ { seen[$1] } END { print length(seen) }' table)" = 2 ] || die "not two sizes: $(cat table)"
grep -qE '^ +[0-9]+ +a worker was lost +4 -> ' table || die "the table has no lost worker: $(cat table)"
say_line "hvd-bench does as its page says; a change cost: $(sed -n '/because/{n;p;}' cost)"
