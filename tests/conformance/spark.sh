#!/usr/bin/env bash
# Section 6.4: the reference's tests on a Spark cluster. spark.sh ELASTIC TRAINER [NAME...]
#
# A Spark worker is a host here, its cores are slots, a task is a worker. That Spark starts a failed task
# again is a blacklist that forgives at once; its five settings that keep executors and nodes from being
# used again are our ways to bar a slot or a host.
. "$(dirname "$0")/lib.sh"
conformance_begin "$@"

host() { echo "127.0.0.$1"; }
H1=$(host 1) H2=$(host 2) H3=$(host 3) H4=$(host 4)

# setting NAME, for what: the options of it, and where the failures are held against.
setting_names=(executor_for_task failed_executor failed_executor_in_app failing_node
  failing_node_in_app)
setting() {
  case $1 in
    executor_for_task) options --blacklist-scope slot --blacklist-forever ;;
    failed_executor) options --blacklist-scope slot --blacklist-cooldown-range 600 3600 ;;
    failed_executor_in_app) options --blacklist-scope slot --slot-restarts 1 ;;
    failing_node) options --blacklist-scope host --blacklist-cooldown-range 600 3600 ;;
    failing_node_in_app) options --blacklist-scope host --blacklist-forever ;;
  esac
}

# ---- nothing happens, or what happens does not matter --------------------------------------------------

same_host() { [ "$(cut -d ' ' -f 4 "$log" | sort -u | wc -l)" = 1 ] || die 'rank 0 has moved'; }

# Of six slots the first five that are ready.
scenario 6.4 happy_run
hosts_from 0 "$H1:1" "$H2:2" "$H3:3"
options -np 5 --min-np 5 --max-np 5
trains --epochs 10
expects "5 * 0 1" 'again 9'
afterwards same_host
play

scenario 6.4 fault_tolerance_unused_hosts_added_and_removed
hosts_from 0 "$H1:1" "$H2:1"
hosts_from 1 "$H1:1" "$H2:1" "$H3:1" "$H4:1"
hosts_from 2 "$H1:1" "$H2:1"
options -np 2 --min-np 2 --max-np 2
expects "2 $H1 0 1" 'again 2'
never_says "($H3|$H4): an agent of this host says hello"
play

# ---- hosts are exchanged -------------------------------------------------------------------------------

scenario 6.4 fault_tolerance_hosts_added_and_removed
hosts_from 0 "$H1:1" "$H2:1"
hosts_from 1 "$H2:1" "$H3:1"
hosts_from 2 "$H3:1" "$H4:1"
changes_after 0 1
options -np 2 --min-np 2 --max-np 2
expects "2 $H1 0 1" "2 $H2 1 2" "2 $H3 1 3"
play

scenario 6.4 fault_tolerance_hosts_added_and_removed '30 epochs'
hosts_from 0 "$H1:1" "$H2:1"
expects "2 $H1 0 1"
for ((epoch = 1; epoch < 30; epoch++)); do
  hosts_from $epoch "$(host $((epoch % 3 + 1))):1" "$(host $(((epoch + 1) % 3 + 1))):1"
  expects "2 $(host $((epoch % 3 + 1))) 1 $((epoch + 1))"
done
changes_after {0..28}
trains --epochs 30
options -np 2 --min-np 2 --max-np 2
play

# Agents first: they would start workers again. A host that is lost takes its files with it: an agent that
# is killed together with its supervisor leaves the file that names it.
lose_all_hosts() {
  local name pid killed=()
  await_epoch 1
  for name in hvd-agent epoch_trainer; do
    for pid in $(marked); do
      [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = $name ] || continue
      kill -KILL "$pid" 2>/dev/null || true
      killed+=("$pid")
    done
  done
  for pid in "${killed[@]}"; do await_end "$pid" || true; done
  find "$folder/home" -name '*.agent' -delete
}

scenario 6.4 fault_tolerance_all_hosts_lost
hosts_from 0 "$H1:1" "$H2:1"
hosts_from 1
gates_after 0
# After the job's end a process of the driver waits for agents that were lost, for --driver-grace.
options -np 2 --min-np 2 --driver-grace 1s "${ends_when_short[@]}"
while_it_runs lose_all_hosts
expects "2 $H1 0 1"
ends 3
play

scenario 6.4 fault_tolerance_all_hosts_lost 'unlisted, but there'
hosts_from 0 "$H1:1" "$H2:1"
hosts_from 1
options -np 2 --min-np 2 "${ends_when_short[@]}"
expects "2 $H1 0 1" 'again 2'
says '2 members that are to leave stay for now, because fewer than --min-np 2 would be left'
ours "who is no longer listed leaves when there is a replacement; there is none, so they train to the end"
play

open_when_replaced() {
  await "$err" "($H1|$H2):0#[0-9]+ has left" 2
  open_gate 1
}

# Of the two the one that was ready first.
on_new_host() {
  local last
  last=$(tail -n 1 "$log" | cut -d ' ' -f 4)
  [ "$last" = "$H3" ] || [ "$last" = "$H4" ] || die "rank 0 is on $last"
}

scenario 6.4 fault_tolerance_all_hosts_lost 'others come'
hosts_from 0 "$H1:1" "$H2:1"
hosts_from 1 "$H3:1" "$H4:1"
changes_after 0
gates_after 1
while_it_runs open_when_replaced
options -np 2 --min-np 2 --max-np 2
expects "2 $H1 0 1" "2 * * *" "2 * 1 3"
afterwards on_new_host
ours "the reference ends, as no host of the previous round is left; here one stays until it has handed" \
  "the state over"
play

# ---- one fails -----------------------------------------------------------------------------------------

for how in raise kill; do
  scenario 6.4 fault_tolerance_no_spark_blacklist "$how"
  hosts_fixed "$H1:1" "$H2:1"
  options -np 2
  exits 1.0 $how-once 0
  expects "2 $H1 0 1" "2 $H2 1 2" "2 $H2 1 2"
  play
done

for setting in "${setting_names[@]}"; do
  scenario 6.4 fault_tolerance_spark_blacklist "$setting"
  hosts_fixed "$H1:1" "$H2:1"
  options -np 2 "${ends_when_short[@]}"
  setting "$setting"
  exits 1.0 raise-once 0
  expects "2 $H1 0 1"
  if [ "$setting" = failed_executor_in_app ]; then
    exits 2.0 raise "1@$H1" # the one that was started again
    expects "2 $H2 1 2"
    ours "--slot-restarts counts: one failure is forgiven, the second is not"
  fi
  ends 3
  play
done

scenario 6.4 fault_tolerance_exception_single_rank
hosts_fixed "$H1:2" "$H2:2"
options -np 2 --min-np 2 --max-np 2
exits 1.0 raise-once 0
expects "2 $H1 0 1" "2 $H1 1 2" "2 $H1 1 2"
play

scenario 6.4 fault_tolerance_exception_all_ranks
hosts_fixed "localhost:2"
options -np 2
exits 1.0 raise 0 1
expects '2 localhost 0 1'
ends 1 'every worker of round 1 has failed; the first failure: .*exit code 1'
play

scenario 6.4 fault_tolerance_exception_with_min_hosts_timeout
hosts_fixed "$H1:1" "$H2:1"
options -np 2 "${ends_when_short[@]}" --blacklist-forever
exits 1.0 raise 0
expects "2 $H1 0 1"
ends 3
play

# ---- the size changes ----------------------------------------------------------------------------------

scenario 6.4 auto_scale_up
hosts_from 0 "$H1:1"
hosts_from 1 "$H1:1" "$H2:1"
hosts_from 2 "$H1:1" "$H2:1" "$H3:1"
changes_after 0 1
options -np 1 --min-np 1 --max-np 5
expects "1 $H1 0 1" "2 $H1 0 2" "3 $H1 0 3"
play

scenario 6.4 auto_scale_down_by_discovery
hosts_from 0 "$H1:1" "$H2:1" "$H3:1"
hosts_from 1 "$H2:1" "$H3:1"
hosts_from 2 "$H2:1"
changes_after 0 1
options -np 3 --min-np 1 --max-np 4
expects "3 $H1 0 1" "2 $H2 1 2" "1 $H2 1 3"
play

for rule in reference our; do
  scenario 6.4 auto_scale_down_by_exception "${rule/our/our default}"
  hosts_fixed "$H1:1" "$H2:1" "$H3:1" "$H4:1"
  declare -n blacklist=${rule}_blacklist
  options -np 4 --min-np 1 "${blacklist[@]}"
  exits 1.0 raise 0
  exits 2.0 raise 1
  expects "4 $H1 0 1" "3 $H2 1 2" "2 $H3 2 3"
  play
done

scenario 6.4 auto_scale_no_spark_black_list
hosts_fixed "$H1:2" "$H2:2"
options -np 4 --min-np 1
newcomers_wait
exits 1.0 raise-once 1
changes_after 1
expects "4 $H1 0 1" "3 $H1 0 2" "4 $H1 0 3"
play

for setting in "${setting_names[@]}"; do
  scenario 6.4 auto_scale_spark_blacklist "$setting"
  hosts_fixed "$H1:2" "$H2:2"
  options -np 4 --min-np 1
  setting "$setting"
  trains --epochs 2
  exits 1.0 raise-once 1
  case $setting in
    failed_executor_in_app)
      newcomers_wait
      changes_after 1
      trains --epochs 4
      exits 3.0 raise "3@$H1"
      expects "4 $H1 0 1" "3 $H1 0 2" "4 $H1 0 3" "3 $H1 0 4"
      says "blacklist: $H1:1 failed: barred"
      ours "--slot-restarts counts: after the first failure it is used again, after the second it is not"
      ;;
    failing_node*)
      expects "4 $H1 0 1" "2 $H2 2 2"
      ours "Spark leaves what else runs on such a node alone; ours takes the host out with" \
        "--blacklist-scope host, and leaves the others alone with --blacklist-scope slot"
      ;;
    *) expects "4 $H1 0 1" "3 $H1 0 2" ;;
  esac
  play
done

conformance_end
