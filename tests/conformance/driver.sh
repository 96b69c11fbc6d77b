#!/usr/bin/env bash
# The reference's tests of its driver (docs/conformance.md, "The driver"), where its workers are fakes
# inside one process: the same with real ones.
#
#     driver.sh ELASTIC PUPIL CLERK HOSTS [SCENARIO...]
. "$(dirname "$0")/kit.sh"
clerk=$(realpath "$3")
hvd_hosts=$(realpath "$4")
body_begin "$@"
shift 4
unset "${!HVD_@}"

A=127.0.0.1 B=127.0.0.2 C=127.0.0.3 D=127.0.0.4

# Hosts by letter, as they are called in docs/conformance.md.
letters() { sed 's/127\.0\.0\.1/A/g; s/127\.0\.0\.2/B/g; s/127\.0\.0\.3/C/g; s/127\.0\.0\.4/D/g'; }
words() { tr '\n' ' ' | sed 's/ *$//'; }

# list HOST:SLOTS...: what discovery finds from now on.
list() {
  printf '%s\n' "${@:-# none}" >hosts.new
  mv hosts.new hosts
  [ -e find.sh ] || printf '#!/bin/sh\ncat hosts\n' >find.sh
  chmod +x find.sh
}

told() { await "$err" "$@"; }
count() { grep -cE -- "$1" "$err"; }

# Of each round: how many, and who by rank: "4 A:0,1 B:0,1".
rounds() {
  awk '/ round [0-9]+ \((first|switch|recovery)\): size/ { sub(/.*size /, ""); sub(/,.*/, ""); size = $0 }
    / round [0-9]+: by rank / { sub(/.*by rank /, ""); print size " " $0 ";" }' "$err" | letters | words
}

# What the workers of this job have ended with: "A:0 exit code 0, A:1 killed by signal 9".
ends() {
  sed -nE 's/.* (127[^ ]*)#[0-9]+: (exit code [0-9]+|killed by signal [0-9]+).*/\1 \2/p' "$err" |
    sort | letters | paste -sd , | sed 's/,/, /g'
}

count_ends() { sed -nE 's/.* 127[^ ]*#[0-9]+: ((exit code|killed by signal) [0-9]+).*/\1/p' "$err" | sort | uniq -c |
  awk '{ $1 = $1 "x"; print }' | paste -sd ';' | sed 's/;/; /g'; }

places() { sed -nE 's/^\[[^]]*\] place //p' "$out" | sort -n | paste -sd ';' | sed 's/;/; /g'; }

stop() {
  ask stop >/dev/null || die "stop: exit code $?"
  finish 143
}

pupils() { # WORDS of the driver -- WORDS of a pupil
  local words=()
  while [ "$1" != -- ]; do
    words+=("$1")
    shift
  done
  shift
  final=$folder/$job.final
  made=$folder/$job.made
  : >"$made" >"$final"
  start "${words[@]}" -- "$trainer" --step-ms 5 --say "$say" --made "$made" --final "$final" "$@"
}

# ---- places ------------------------------------------------------------------------------------------

rank_and_size() {
  start -np 4 -H $A:2,$B:2 -- "$clerk" places 5
  finish 0
  expect 'places 0 4 0 2 0 2; 1 4 1 2 0 2; 2 4 0 2 1 2; 3 4 1 2 1 2, ends 4x exit code 0' \
    "places $(places), ends $(count_ends)"
}

# B's workers fail before they are ready, for good: A goes on alone.
rank_and_size_with_host_failure() {
  # shellcheck disable=SC2016 # for the worker's shell
  start -np 2 -H $A:2,$B:2 --blacklist-forever -- \
    sh -c '[ "$HVD_HOST" = 127.0.0.1 ] || exit 1; exec "$0" places 5' "$clerk"
  finish 0
  expect 'places 0 2 0 2 0 1; 1 2 1 2 0 1, ends A:0 exit code 0, A:1 exit code 0, B:0 exit code 1, B:1 exit code 1' \
    "places $(places), ends $(ends)"
}

rank_and_size_with_host_added() {
  list $A:2
  pupils -np 2 --host-discovery-script ./find.sh -- --steps 300
  await_round 2
  told 'all 2 train'
  list $A:2 $B:2
  finish 0
  expect '2 A:0,1; 4 A:0,1 B:0,1;, ends 4x exit code 0' "$(rounds), ends $(count_ends)"
}

order_available_hosts() {
  list $A:1 $B:1 $C:1
  pupils -np 3 --host-discovery-script ./find.sh --min-np 1 --
  await_round 3
  list $D:1 $C:1 $B:1
  told "round [0-9]+: by rank $B:0 $C:0 $D:0"
  stop
  local last
  last=$(rounds)
  expect '3 A:0 B:0 C:0; ... 3 B:0 C:0 D:0;' "${last%%;*}; ... ${last##*; }"
}

# ---- waiting -----------------------------------------------------------------------------------------

# Nobody is launched before there are as many slots as -np says.
wait_for_available_slots() {
  local seen=() listed
  list
  start -np 16 --min-np 8 --host-discovery-script ./find.sh -- "$clerk" places 3
  told ' begins'
  for listed in $A:4 "$A:8 $B:4" "$A:8 $B:8"; do
    seen+=("$(count 'is launched')")
    # shellcheck disable=SC2086 # words
    list $listed
    told "hosts: .*${listed##* }|hosts: .*->${listed##*:}"
  done
  finish 0
  expect 'launched 0 0 0 at 0 4 12, then 16; rounds 16; told 0' \
    "launched ${seen[*]} at 0 4 12, then $(count 'is launched'); rounds $(rounds | sed 's/ A.*//'); told $(count 'is told')"
}

# The reference wants two hosts before it begins; here one is enough, and -np asks for more.
wait_for_min_hosts() {
  list $A:2
  pupils -np 2 --host-discovery-script ./find.sh -- --steps 5
  finish 0
  local one
  one=$(rounds)
  new_job
  list $A:2
  pupils -np 3 --host-discovery-script ./find.sh -- --steps 5
  told 'hosts: '
  list $A:2 $B:2
  finish 0
  expect '-np 2: 2 A:0,1; -np 3: 4 A:0,1 B:0,1;' "-np 2: $one -np 3: $(rounds)"
}

# ---- the end of a job --------------------------------------------------------------------------------

# The last ones may be told of the first one's end before they come to their own.
all_workers_fail() {
  pupils -np 4 --min-np 1 -H $A:2,$B:2 --blacklist-forever -- --where step --wrong fail --at 20
  await_driver
  nothing_left
  expect 'exit code 1, ends 4x exit code 1' "exit code $code, ends $(count_ends)"
}

# Rank 0 is done while the others would go on.
shutdown_on_success() {
  start -np 4 -H $A:2,$B:2 -- "$clerk" first-ends
  finish 0
  expect 'rank 0: success, 3x the job has finished, ends 4x exit code 0' \
    "rank 0: $(sed -n 's/^\[0 .*over: //p' "$out"), $(grep -c 'over: the job has finished' "$out")x the job has finished, ends $(count_ends)"
}

one_of_four_fails() { # WORDS of the driver
  pupils -np 4 --min-np 2 -H $A:2,$B:2 --blacklist-forever "$@" -- --steps 100 --where step --wrong fail \
    --at 20 --rank 0
  finish 0
}

# With the options that select the reference's rule, and without: then its neighbour trains on.
host_shutdown_on_worker_failure() {
  local by_host
  one_of_four_fails "${reference_blacklist[@]}"
  by_host=$(rounds)
  new_job
  one_of_four_fails
  expect 'by host: 4 A:0,1 B:0,1; 2 B:0,1; by slot: 4 A:0,1 B:0,1; 3 A:1 B:0,1;' \
    "by host: $by_host by slot: $(rounds)"
}

shutdown_on_initial_discovery_failure() {
  printf '#!/bin/sh\nexit 3\n' >find.sh
  chmod +x find.sh
  start -np 2 --host-discovery-script ./find.sh -- "$clerk" places 5
  await_driver
  nothing_left
  expect 'exit code 1, launched 0, find.sh: exit code 3' \
    "exit code $code, launched $(count 'is launched'), $(grep -oE 'find.sh: exit code 3' "$err" | tail -n 1)"
}

# ---- news --------------------------------------------------------------------------------------------

news() { sed -nE 's/.* is told: hosts (.*)$/\1/p' "$err" | paste -sd , | sed 's/,/, /g'; }
told_by_name() {
  sed -nE 's/^\[[0-9]+ ([^]]*)\] told: (.*)$/\1 \2/p' "$out" | letters | sort | uniq -c |
    awk '{ $1 = $1 "x"; print }' | paste -sd , | sed 's/,/, /g'
}

worker_notification_manager() {
  list $A:2
  start -np 2 --host-discovery-script ./find.sh -- "$clerk" news
  told 'all 2 train'
  list $A:2 $B:1
  told 'all 3 train'
  list $A:2
  told 'all 2 train' 2
  expect '+1 -0, +0 -1; 2x A:0 the membership is about to change, 2x A:1 the membership is about to change, 1x B:0 this worker has left the job' \
    "$(news); $(told_by_name)"
  stop
}

# As many news as changes, though none of them can be followed.
send_notifications_without_assignments() {
  list $A:2 $B:2
  start -np 4 --min-np 4 --host-discovery-script ./find.sh -- "$clerk" news
  told 'all 4 train'
  list $A:2
  told 'is told' 1
  list $A:1
  told 'is told' 2
  list $A:2
  told 'is told' 3
  stop
  expect '+0 -1, +0 -1, +1 -0; rounds 4 A:0,1 B:0,1;' "$(news); rounds $(rounds)"
}

update_available_hosts() {
  list
  start -np 100 --host-discovery-script ./find.sh -- "$clerk" places 5
  told ' begins'
  list $A:2
  told 'hosts: '
  list $A:2 $B:2
  told 'hosts: ' 2
  list $B:2
  told 'hosts: ' 3
  list $B:1 $C:2
  told 'hosts: ' 4
  list $C:2 $B:1 # another order, the same hosts
  kill -USR1 "$driver"
  list $B:1 $C:2 $D:0
  told 'hosts: ' 5
  stop
  expect '+A:2, +B:2, -A, B:2->1 +C:2, +D:0' \
    "$(sed -n 's/.* hosts: //p' "$err" | letters | paste -sd , | sed 's/,/, /g')"
}

# Of each host: its slots, and how many of them run a worker.
used() {
  ask hosts --json | grep -oE '"name":"[^"]*","slots":[0-9]+,"used":[0-9]+' |
    sed -E 's/"name":"([^"]*)","slots":([0-9]+),"used":/\1 \2 /' | letters | paste -sd , | sed 's/,/, /g'
}

blacklist_host() {
  local before
  pupils -np 4 --min-np 2 -H $A:2,$B:2 "${reference_blacklist[@]}" -- --where step --wrong die --at 20 --rank 0
  told 'all 4 train'
  before=$(used)
  told 'all 2 train'
  expect 'A 2 2, B 2 2; then A 2 0, B 2 2; held against A' \
    "$before; then $(used); held against $(ask blacklist --json | grep -oE '"host":"[^"]*"' | cut -d '"' -f 4 | letters)"
  stop
}
