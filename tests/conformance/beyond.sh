#!/usr/bin/env bash
# Section 6.6: what the reference does not test, and where most of its jobs end or hang. Every sum trainer
# checks its sum after each step, so a step that is lost or made twice ends it with a word.
# beyond.sh ELASTIC TRAINER [NAME...]
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/facts.sh"
conformance_begin "$@"

# For jobs in which a process is to exceed its lease, and no other one may, on a machine that is busy.
short_leases=(--beat 100ms --lease 15s)
# Failed slots stay empty until they are forgiven: so it is known which rounds come.
forgive() { ask blacklist clear "$1" >/dev/null || die "blacklist clear $1: exit code $?"; }

four() { # WORDS of the driver -- WORDS of a sum trainer
  sum_trainers -np 4 --min-np 2 -H $A:2,$B:2 --blacklist-forever "$@"
  driver_says 'all 4 train'
}

listed() { # WORDS of the driver -- WORDS of a sum trainer: on hosts that change
  sum_trainers "${by_script[@]}" --blacklist-forever "$@"
  driver_says 'all [0-9]+ train'
}

# In $pid: who trains in that slot.
find_worker() { # HOST SLOT
  for pid in $(workers "HVD_HOST=$1"); do
    [ "$(variable "$pid" HVD_SLOT)" != "$2" ] || return 0
  done
  die "no worker in $1:$2"
}

strike() { # SIGNAL HOST SLOT
  find_worker "$2" "$3"
  kill "-$1" "$pid" || die "$2:$3 has gone"
}

# further N: so many more steps of rank 0
further() {
  await "$made" '^[0-9]+ 0 ' $(($(grep -c '^[0-9]* 0 ' "$made") + $1))
}

never_said() { # REGEX
  ! grep -E -- "$1" "$err" >found || die "the driver has said '$(head -n 1 found)'"
}

nothing_is_blamed() {
  never_said 'is revoked|blacklist: '
  ask blacklist --json | grep -qF '"blacklist":[]' || die "held against somebody: $(ask blacklist)"
}

# It trains on; all its steps were made, in order.
trains_on() {
  further 10
  ! grep 'sum_trainer:' "$err" || die 'a trainer has found something wrong'
  awk '{ made[$3] = 1; if ($3 > most) most = $3 }
    END { for (i = 1; i <= most; i++) if (!made[i]) { print "step " i " was left out"; exit 1 } }' \
    "$made" >found || die "$(cat found)"
  stop
}

# ---- one of them dies, or is silent ------------------------------------------------------------------

kill_rank_0() {
  four --
  strike KILL $A 0
  driver_says 'all 3 train'
  forgive $A
  driver_says 'all 4 train' 2
  trains_on
  comes_to 'A:0,1 B:0,1; A:1 B:0,1; A:1 B:0,1 A:0' "$(rounds)"
}
shows '6.6(1)' kill_rank_0

# The second one dies when the others have been told of the first; that makes one round, or two.
kill_during_recovery() {
  four --
  strike KILL $A 0
  driver_says 'round 1 is revoked'
  strike KILL $B 1
  driver_says 'all 2 train'
  trains_on
  comes_to 'A:0,1 B:0,1 ... A:1 B:0' "$(rounds | sed 's/;.*;/ .../; s/;/ .../')"
}
shows '6.6(2)' kill_during_recovery

worker_is_stopped() {
  four "${short_leases[@]}" --
  strike STOP $B 1
  driver_says "$B:1#4: silent for longer than its lease"
  driver_says 'all 3 train'
  forgive $B
  driver_says 'all 4 train' 2
  trains_on
  comes_to 'A:0,1 B:0,1; A:0,1 B:0; A:0,1 B:0,1' "$(rounds)"
}
shows '6.6(3)' worker_is_stopped

# All that runs on a host is stopped: its connections stay open and nothing comes.
host_is_silent() {
  local frozen
  four "${short_leases[@]}" --
  find_agent $B
  frozen="$(workers HVD_HOST=$B) $agent $(parent "$agent")"
  # shellcheck disable=SC2086 # words
  kill -STOP $frozen
  driver_says 'silent for longer than the lease'
  driver_says 'all 2 train'
  further 10
  # shellcheck disable=SC2086
  kill -CONT $frozen
  forgive $B
  driver_says 'all 4 train' 2
  trains_on
  comes_to 'A:0,1 B:0,1; A:0,1; A:0,1 B:0,1' "$(rounds)"
}
shows '6.6(4)' host_is_silent 'SIGSTOP to all of it'

# The same with real networks, where they can be made.
host_is_black_holed() {
  local answer=0
  "$(dirname "$script")/../integration/two_networks.sh" "$elastic" "$(built bare_trainer)" >networks 2>&1 || answer=$?
  case $answer in
    0) shown='lost, and back, over a link that is down: integration/two_networks.sh' ;;
    77) shown="not seen here: $(cat networks)" ;;
    *) die "integration/two_networks.sh: $(cat networks)" ;;
  esac
}
shows '6.6(4)' host_is_black_holed 'link down'

single_host() {
  sum_trainers -np 4 --min-np 2 -H $A:4 --blacklist-forever --
  driver_says 'all 4 train'
  strike KILL $A 2
  driver_says 'all 3 train'
  forgive $A
  driver_says 'all 4 train' 2
  trains_on
  comes_to 'A:0,1,2,3; A:0,1,3; A:0,1,3,2' "$(rounds)"
}
shows '6.6(18)' single_host

driver_is_killed() {
  local before
  four --
  before=$(workers)
  kill_driver
  further 5
  BODY_TEST=$folder "$elastic" --resume "$job" --state-dir "$state" >>"$out" 2>>"$err" </dev/null &
  driver=$!
  driver_says '(is back|says hello) with 2 workers' 2
  [ "$(workers)" = "$before" ] || die 'workers were started anew'
  comes_to 'A:0,1 B:0,1' "$(rounds)"
  strike KILL $A 1
  driver_says 'all 3 train'
  trains_on
  comes_to 'A:0,1 B:0,1; A:0 B:0,1' "$(rounds)"
}
shows '6.6(14)' driver_is_killed

# ---- how a process ends ------------------------------------------------------------------------------

trainers() { # WORDS of tests/workers/bare_trainer.c
  trainer=$(built bare_trainer)
  start "${PATIENT[@]}" -np 4 --min-np 2 -H $A:2,$B:2 --blacklist-forever -- "$trainer" --say "$say" "$@"
}

exits_0_early() {
  trainers --exit-at 20 --exit-code 0 --rank 1
  driver_says 'all 3 train'
  stop
  comes_to 'A:0,1 B:0,1; A:0 B:0,1' "$(rounds)"
  comes_to "A:1#2: exit code 0 before the worker's training had finished" \
    "$(grep -oE '127.0.0.1:1#2: exit code 0.*' "$err" | head -n 1 | letters)"
}
shows '6.6(7)' exits_0_early

# Its orphan has its output open, and is in a session of its own.
orphan_holds_stdout() {
  trainers --daemon
  driver_says 'all 4 train'
  strike KILL $A 1
  driver_says 'all 3 train'
  stop
  comes_to 'A:0,1 B:0,1; A:0 B:0,1' "$(rounds)"
}
shows '6.6(8)' orphan_holds_stdout

# The slot is taken away and given back while the process that has left it lives on: until
# --stall-shutdown.
old_process_exits_late() {
  list $A:2 $B:2
  listed -np 4 --min-np 2 --stall-warning 1s --stall-shutdown 15s -- --where end --wrong hang
  list $A:2 $B:1
  driver_says 'all 3 train'
  find_worker $B 1
  list $A:2 $B:2
  driver_says 'all 4 train' 2
  is_alive "$pid" && die 'there were two in that slot'
  nothing_is_blamed
  trains_on
  comes_to 'A:0,1 B:0,1; A:0,1 B:0; A:0,1 B:0,1' "$(rounds)"
}
shows '6.6(11)' old_process_exits_late

# ---- hosts come and go -------------------------------------------------------------------------------

await_size() {
  local until=$((SECONDS + PATIENCE))
  until ask status --json >view && grep -qE "\"state\":\"running\".*\"size\":$1," view; do
    [ $SECONDS -lt $until ] || die "no round of $1: $(cat view)"
    timeout 0.1 tail -n 0 -f "$err" >/dev/null
  done
}

# It may be gone and back within one change, or leave and join.
removed_and_added() {
  list $A:2 $B:2
  listed -np 4 --min-np 2 --
  list $A:2
  driver_says "hosts: -$B"
  list $A:2 $B:2
  driver_says "hosts: .*$B:2" 2
  await_size 4
  nothing_is_blamed
  trains_on
  no_step_twice
  comes_to 'A:0,1 B:0,1 ... A:0,1 B:0,1' "$(rounds | sed -E 's/^([^;]*)$/\1; \1/; s/;.*;/;/; s/;/ .../')"
}
shows '6.6(5)' removed_and_added

added_while_below_min() {
  list $A:2 $B:2
  listed -np 4 --min-np 4 --
  list $A:2
  driver_says '2 members that are to leave stay for now'
  list $A:2 $C:2
  driver_says 'all 4 train' 2
  nothing_is_blamed
  trains_on
  no_step_twice
  comes_to 'A:0,1 B:0,1; A:0,1 C:0,1' "$(rounds)"
}
shows '6.6(6)' added_while_below_min 'by the script'

added_after_failures() {
  list $A:2 $B:2
  listed -np 4 --min-np 4 --
  strike KILL $B 0
  strike KILL $B 1
  driver_says "$B:1#[0-9]*: killed by signal 9"
  list $A:2 $B:2 $C:2
  driver_says 'all 4 train' 2
  trains_on
  comes_to 'A:0,1 B:0,1; A:0,1 C:0,1' "$(rounds)"
}
shows '6.6(6)' added_after_failures 'by failures'

STEPS_OF_BOOT=200

# The others boot until the door is there, which is made when rank 0 has done so many steps.
boots_for_long() {
  local door=$folder/door pause
  list $A:2
  : >"$door"
  listed -np 2 --max-np unlimited -- --boot-until "$door"
  rm "$door"
  list $A:2 $B:2
  driver_says "$B:[01]#4 is launched"
  further $STEPS_OF_BOOT
  never_said 'is prepared beside round 1'
  : >"$door"
  driver_says 'is prepared beside round 1'
  driver_says 'all 4 train'
  pause=$(ask changes --json | grep -oE '"pause_us":[0-9]+' | tail -n 1 | cut -d : -f 2)
  nothing_is_blamed
  trains_on
  no_step_twice
  comes_to 'A:0,1; A:0,1 B:0,1' "$(rounds)"
  shown+="; $STEPS_OF_BOOT steps beside the boot, a pause of $((pause / 1000)) ms"
}
shows '6.6(9)' boots_for_long

crashes_while_booting() {
  # shellcheck disable=SC2016,SC2034 # for the worker's shell
  starter=(sh -c '[ "$HVD_HOST" != 127.0.0.2 ] || exit 1; exec "$@"' sh)
  list $A:2
  listed -np 2 --max-np unlimited --
  list $A:2 $B:2
  driver_says "$B:0#[0-9]*: exit code 1"
  driver_says "$B:1#[0-9]*: exit code 1"
  never_said 'is revoked'
  trains_on
  no_step_twice
  comes_to 'A:0,1' "$(rounds)"
}
shows '6.6(10)' crashes_while_booting

# Nothing is committed but what the change to it commits. Then the old one dies.
newcomer_is_promoted() {
  local last
  list $A:1
  listed -np 1 --min-np 1 --max-np unlimited -- --commit-every 1000000000
  further 10
  list $A:1 $B:1
  driver_says 'all 2 train'
  further 10
  strike KILL $A 0
  driver_says 'all 1 train' 2
  trains_on
  comes_to 'A:0; A:0 B:0; B:0' "$(rounds)"
  last=$(awk '$1 == 1 && $3 > last { last = $3 } END { print last }' "$made")
  [ "$(awk '$1 == 3 { print $3; exit }' "$made")" = $((last + 1)) ] ||
    die "round 1 ended with step $last, round 3 begins with $(awk '$1 == 3 { print $3; exit }' "$made")"
  shown+='; from the step of the change on'
}
shows '6.6(12)' newcomer_is_promoted

all_hosts_replaced() {
  list $A:2 $B:2
  listed -np 4 --max-np 4 --
  list $B:2 $C:2
  driver_says 'all 4 train' 2
  list $C:2 $D:2
  driver_says 'all 4 train' 3
  nothing_is_blamed
  trains_on
  no_step_twice
  comes_to 'A:0,1 B:0,1; B:0,1 C:0,1; C:0,1 D:0,1' "$(rounds)"
}
shows '6.6(13)' all_hosts_replaced

FLAPS=20

host_flaps() {
  local i
  list $A:2
  listed -np 2 --max-np unlimited --
  for ((i = 1; i <= FLAPS; i++)); do
    list $A:2 $B:1
    driver_says "hosts: [+]$B:1" "$i"
    list $A:2
    driver_says "hosts: -$B" "$i"
  done
  list $A:2 $B:1
  driver_says "hosts: [+]$B:1" $((FLAPS + 1))
  await_size 3
  nothing_is_blamed
  trains_on
  no_step_twice
  comes_to "$FLAPS times; A launched 2; A:0,1 ... A:0,1 B:0" \
    "$(lines_with "hosts: -$B") times; A launched $(lines_with "$A:.* is launched"); $(rounds |
      sed 's/;.*;/;/; s/;/ .../')"
}
shows '6.6(15)' host_flaps

finds_by() { # SCRIPT: by this from now on
  printf '#!/bin/sh\n%s\n' "$1" >find.new
  chmod +x find.new
  mv find.new find.sh
}

discovery_hangs_or_prints_rubbish() {
  list $A:2
  listed -np 2 --max-np unlimited --discovery-timeout 10s --
  finds_by 'exec sleep 600'
  driver_says 'find.sh: did not end within 10s'
  finds_by 'echo a b c:x'
  driver_says 'find.sh: line 1: "a b c:x"'
  finds_by 'head -c 100000 /dev/urandom'
  driver_says 'find.sh: line [0-9]+: .*(NUL|may follow|cannot be)' 2
  finds_by 'exit 3'
  driver_says 'find.sh: exit code 3'
  further 10
  never_said 'is told'
  list $A:2 $B:2
  finds_by 'cat hosts'
  driver_says 'all 4 train'
  nothing_is_blamed
  trains_on
  comes_to 'A:0,1; A:0,1 B:0,1' "$(rounds)"
}
shows '6.6(16)' discovery_hangs_or_prints_rubbish

# Two cores are enough for this many, and tell little of how long it would take on as many machines.
RANKS=64

us_of_change() { # CAUSE NAME
  ask changes --json | grep -oE "\"cause\":\"$1\"[^}]*" | grep -oE "\"$2\":[0-9]+" | tail -n 1 | cut -d : -f 2
}

many_ranks() {
  local i there='' first
  for ((i = 1; i <= 8; i++)); do there+=,127.0.0.$i:$((RANKS / 8)); done
  sum_trainers -np $RANKS --min-np 2 -H "${there#,}" --blacklist-forever -- --step-ms 100
  driver_says "all $RANKS train"
  first=$(us_of_change first rebuild_us)
  strike KILL 127.0.0.8 7
  driver_says "all $((RANKS - 1)) train"
  shown="connected in $((first / 1000)) ms, after a death in $(($(us_of_change recovery rebuild_us) / 1000)) ms"
  shown+=", a pause of $(($(us_of_change recovery pause_us) / 1000)) ms"
  trains_on
  comes_to "$RANKS $((RANKS - 1))" "$(sizes)"
}
shows '6.6(17)' many_ranks

conformance_end
