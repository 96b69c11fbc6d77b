#!/usr/bin/env bash
# Small requests that are fused: their numbers, their bits, ranks that die between a start and a
# wait, ranks that run out of data, and a program whose ranks wait at different places.
#
#     requests.sh ELASTIC TRAINER
. "$(dirname "$0")/../shell/lib.sh"
test_begin "$@"

# run STEPS MODE WORDS...: to the end, well.
run() {
  local steps=$1 mode=$2
  shift 2
  new_job
  start "$@" "$trainer" "$steps" "$mode" "$say"
  finish 0
  done_by=$(grep -c "^done .* $steps\$" "$say")
  say_line "$mode, ${*: -2}: $done_by workers are done"
}

# On one host, on several, and over links alone; and without fusion.
for words in '-H 127.0.0.1:3' '-H 127.0.0.1:1,127.0.0.2:1,127.0.0.3:1' '-H 127.0.0.1:2,127.0.0.2:1' \
  '-H 127.0.0.1:3 --cpu-operations tcp' '-H 127.0.0.1:3 --fusion-threshold-mb 0'; do
  # shellcheck disable=SC2086 # words
  run 30 plain -np 3 $words
  [ "$done_by" = 3 ] || die "$done_by workers are done with $words"
  # shellcheck disable=SC2086
  run 10 join -np 3 $words
  [ "$done_by" = 3 ] || die "$done_by workers are done with $words"
done
for words in '-H 127.0.0.1:3' '-H 127.0.0.1:1,127.0.0.2:1,127.0.0.3:1'; do
  # shellcheck disable=SC2086
  run 20 same --fixed-order -np 3 $words
  [ "$done_by" = 3 ] || die "$done_by workers are done with $words"
done

# The timeline tells of how many requests each operation is made: together of all that were started.
run 30 plain -np 3 -H 127.0.0.1:3 --timeline-filename t.json
python3 - t.json 6000 <<'END' || die 'the requests in the timeline are not those that were started'
import collections, json, sys
events = json.loads(open(sys.argv[1]).read().rstrip().rstrip(",") + "]")
made = collections.defaultdict(list)
for event in events:
    if event["ph"] == "X" and event["name"] == "allreduce":
        made[event["pid"]].append(event["args"].get("requests", 1))
print({pid: (sum(each), max(each), len(each)) for pid, each in made.items()})
sys.exit(len(made) != 3 or any(sum(each) != int(sys.argv[2]) or max(each) < 16 for each in made.values()))
END

# A rank of each of eight rounds dies: the others get HVD_E_REVOKED for all their requests, go back, and go on.
for words in '-H 127.0.0.1:3' '-H 127.0.0.1:1,127.0.0.2:1,127.0.0.3:1'; do
  # shellcheck disable=SC2086
  run 60 die -np 3 --min-np 2 $words
  deaths=$(grep -cE "warning job: [^ ]+#[0-9]+: killed by signal 9" "$err")
  [ "$deaths" -ge 5 ] || die "only $deaths workers have died with $words"
  say_line "$deaths deaths between start and wait, $words"
done

# Rank 0 waits in the middle of a batch, the others do not. All are told, in numbers; no rank hangs.
new_job
start -np 3 -H 127.0.0.1:3 "$trainer" 20 early "$say"
finish 1
one='operation [0-9]+ is allreduce \(average\) of 1 float64'
many='operation [0-9]+ is allreduce \(average\) of 16 float64, 16 requests fused'
what='the same order, hvd_wait and hvd_test too, or give --fusion-threshold-mb 0$'
told=$(grep -cE "^mismatch: on rank 0 $one, on rank [12] $many; .*$what|^mismatch: on rank [12] $many, on rank 0 $one; .*$what" "$say")
[ "$told" = 3 ] || die "$told of 3 ranks are told who differs and what to do: $(grep mismatch "$say")"
run 20 early -np 3 -H 127.0.0.1:3 --fusion-threshold-mb 0
[ "$done_by" = 3 ] || die "$done_by workers are done without fusion"
say_line 'waits at different places: three mismatches, and none without fusion'
