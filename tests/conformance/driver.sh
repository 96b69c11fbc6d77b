#!/usr/bin/env bash
# Section 6.2: the reference's tests of its driver, where workers are fakes inside one process; here
# with real ones. driver.sh ELASTIC TRAINER [NAME...]
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/facts.sh"
conformance_begin "$@"

# ---- places ------------------------------------------------------------------------------------------

# Of each worker: rank, size, local rank, local size, cross rank, cross size.
rank_and_size() {
  api_probes -np 4 -H $A:2,$B:2 -- places 5
  finish 0
  comes_to '0 4 0 2 0 2; 1 4 1 2 0 2; 2 4 0 2 1 2; 3 4 1 2 1 2' "$(places)"
  comes_to '4x exit code 0' "$(codes)"
}
shows 6.2 rank_and_size

# B's workers fail before they are ready.
rank_and_size_with_host_failure() {
  # shellcheck disable=SC2016 # for the worker's shell
  plain -np 2 --max-np unlimited -H $A:2,$B:2 "${reference_blacklist[@]}" -- \
    sh -c '[ "$HVD_HOST" = 127.0.0.1 ] || exit 1; exec "$0" places 5' "$(built api_probe)"
  finish 0
  comes_to '0 2 0 2 0 1; 1 2 1 2 0 1' "$(places)"
  comes_to '2x exit code 0' "$(codes | grep -o '2x exit code 0')"
}
shows 6.2 rank_and_size_with_host_failure

rank_and_size_with_host_added() {
  list $A:2
  sum_trainers -np 2 --max-np unlimited "${by_script[@]}" -- --steps 300
  driver_says 'all 2 train'
  list $A:2 $B:2
  finish 0
  right_sums 300
  comes_to 'A:0,1; A:0,1 B:0,1' "$(rounds)"
  comes_to '4x exit code 0' "$(codes)"
}
shows 6.2 rank_and_size_with_host_added

# Old hosts keep their order, also against the script's; new hosts are appended.
order_available_hosts() {
  list $A:1 $B:1 $C:1
  sum_trainers -np 3 --min-np 1 "${by_script[@]}" --
  driver_says 'all 3 train'
  list $D:1 $C:1 $B:1
  driver_says "by rank $B:0 $C:0 $D:0\$"
  stop
  comes_to 'A:0 B:0 C:0 ... B:0 C:0 D:0' "$(rounds | sed -E 's/^([^;]*);.*; /\1 ... /; s/^([^;]*); /\1 ... /')"
}
shows 6.2 order_available_hosts

# ---- waiting for slots -------------------------------------------------------------------------------

# No worker is launched before there are as many slots as -np says.
wait_for_available_slots() {
  local before=() listed
  list
  api_probes -np 16 --min-np 8 "${by_script[@]}" -- places 3
  driver_says 'hosts: none'
  for listed in "$A:4" "$A:8 $B:4" "$A:8 $B:8"; do
    before+=("$(lines_with 'is launched')")
    # shellcheck disable=SC2086 # words
    list $listed
    driver_says "hosts: .*[:>]${listed##*:}\$"
  done
  finish 0
  comes_to 'with 0, 4, 12 slots launched: 0 0 0' "with 0, 4, 12 slots launched: ${before[*]}"
  comes_to 'with 16: 16, in one round of 16' "with 16: $(lines_with 'is launched'), in one round of $(sizes)"
}
ours_differs 'before the first round there is nobody to be told of a change; the reference tells twice'
shows 6.2 wait_for_available_slots

wait_for_min_hosts() {
  local with_two
  list $A:2
  sum_trainers -np 2 "${by_script[@]}" -- --steps 5
  finish 0
  with_two=$(rounds)
  new_job
  sum_trainers -np 3 "${by_script[@]}" -- --steps 5
  driver_says 'hosts: '
  list $A:2 $B:1
  finish 0
  comes_to '-np 2: A:0,1, -np 3: A:0,1 B:0' "-np 2: $with_two, -np 3: $(rounds)"
}
ours_differs 'one host is enough; -np that is more than it has makes the job wait for a second one'
shows 6.2 wait_for_min_hosts

shutdown_on_initial_discovery_failure() {
  printf '#!/bin/sh\nexit 3\n' >find.sh
  chmod +x find.sh
  api_probes -np 2 "${by_script[@]}" -- places 5
  finish 1
  comes_to 'launched: 0, find.sh: exit code 3' \
    "launched: $(lines_with 'is launched'), $(tail -n 1 "$err" | grep -oE 'find.sh: exit code 3')"
}
shows 6.2 shutdown_on_initial_discovery_failure

# ---- ends --------------------------------------------------------------------------------------------

all_workers_fail() {
  sum_trainers -np 4 --min-np 1 -H $A:2,$B:2 --blacklist-forever -- --where step --wrong fail --at 20
  finish 1
  comes_to '4x exit code 1' "$(codes)"
}
shows 6.2 all_workers_fail

# Rank 0 is done, the others would go on.
shutdown_on_success() {
  api_probes -np 4 -H $A:2,$B:2 -- first-ends
  finish 0
  comes_to '1x success; 3x the job has finished' "$(sed -n 's/.*over: //p' "$out" | counted)"
  comes_to '4x exit code 0' "$(codes)"
}
ours_differs 'the others are told that the job has finished and end with 0; the reference kills them'
shows 6.2 shutdown_on_success

one_of_four_fails() { # WORDS of the driver
  sum_trainers -np 4 --min-np 2 -H $A:2,$B:2 "$@" -- --steps 100 --where step --wrong fail --at 20 --rank 0
  finish 0
  right_sums 100
}

host_shutdown_on_worker_failure() {
  one_of_four_fails "${reference_blacklist[@]}"
  comes_to 'A:0,1 B:0,1; B:0,1' "$(rounds)"
}
shows 6.2 host_shutdown_on_worker_failure '--blacklist-scope host'

healthy_neighbour_stays() {
  one_of_four_fails --blacklist-forever
  comes_to 'A:0,1 B:0,1; A:1 B:0,1' "$(rounds)"
}
ours_differs 'without that option the other worker of the host trains on'
shows 6.2 healthy_neighbour_stays 'host_shutdown_on_worker_failure, our rule'

# Of each host: its slots, and how many of them run a worker.
used() {
  ask hosts --json | grep -oE '"name":"[^"]*","slots":[0-9]+,"used":[0-9]+' |
    sed -E 's/"name":"([^"]*)","slots":([0-9]+),"used":/\1:\2 uses /' | letters | in_a_row
}

blacklist_host() {
  local victim
  sum_trainers -np 4 --min-np 2 -H $A:2,$B:2 "${reference_blacklist[@]}" --
  driver_says 'all 4 train'
  comes_to 'A:2 uses 2; B:2 uses 2' "$(used)"
  victim=$(workers "HVD_HOST=$A" | head -n 1)
  kill -KILL "$victim" || die "no worker on $A"
  driver_says 'all 2 train'
  comes_to 'A:2 uses 0; B:2 uses 2' "$(used)"
  comes_to 'held against A' \
    "held against $(ask blacklist --json | grep -oE '"host":"[^"]*"' | cut -d '"' -f 4 | letters)"
  stop
}
shows 6.2 blacklist_host

# ---- news --------------------------------------------------------------------------------------------

news() { sed -nE 's/.* is told that hosts have changed: (.*)$/\1/p' "$err" | in_a_row; }

told() { sed -nE 's/^\[[0-9]+ ([^]]*)\] told: (.*)$/\1 \2/p' "$out" | letters | counted; }

worker_notification_manager() {
  list $A:2
  api_probes -np 2 --max-np unlimited "${by_script[@]}" -- news
  driver_says 'all 2 train'
  list $A:2 $B:1
  driver_says 'all 3 train'
  list $A:2
  driver_says 'all 2 train' 2
  await "$out" 'told: this worker has left' # the others train without it before it has said so
  stop
  comes_to '+1 -0; +0 -1' "$(news)"
  comes_to "2x A:0 the membership is about to change; 2x A:1 the membership is about to change; 1x B:0 this \
worker has left the job" "$(told)"
}
ours_differs 'all ranks are told by the driver, at one check; the reference tells rank 0, which asks all'
shows 6.2 worker_notification_manager

# As many news as changes, though none of them can be followed.
send_notifications_without_assignments() {
  list $A:2 $B:2
  api_probes -np 4 --min-np 4 "${by_script[@]}" -- news
  driver_says 'all 4 train'
  list $A:2
  driver_says 'is told'
  list $A:1
  driver_says 'is told' 2
  list $A:2
  driver_says 'is told' 3
  stop
  comes_to '+0 -1; +0 -1; +1 -0' "$(news)"
  comes_to 'A:0,1 B:0,1' "$(rounds)"
}
ours_differs 'who should go is kept until others have come, so training goes on; the reference stops it'
shows 6.2 send_notifications_without_assignments

# The list that is found is compared with the one before: added, added, removed, mixed, none.
update_available_hosts() {
  list
  api_probes -np 100 "${by_script[@]}" -- places 5
  driver_says 'hosts: '
  list $A:2
  driver_says 'hosts: ' 2
  list $A:2 $B:2
  driver_says 'hosts: ' 3
  list $B:2
  driver_says 'hosts: ' 4
  list $B:1 $C:2
  driver_says 'hosts: ' 5
  list $C:2 $B:1 # the same
  kill -USR1 "$driver"
  list $B:1 $C:2 $D:1
  driver_says 'hosts: ' 6
  stop
  comes_to 'none; +A:2; +B:2; -A; B:2->1 +C:2; +D:1' "$(sed -n 's/.* hosts: //p' "$err" | letters | in_a_row)"
}
shows 6.2 update_available_hosts

conformance_end
