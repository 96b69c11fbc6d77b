#!/usr/bin/env bash
# Section 6.3: the reference's tests of discovery, of what its launcher reads, starts and prints, and of
# the state and the sampler of its library. launcher.sh ELASTIC TRAINER [NAME...]
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/facts.sh"
conformance_begin "$@"

# ---- discovery ---------------------------------------------------------------------------------------

listed() {
  ask hosts --json | grep -oE '"name":"[^"]*","slots":[0-9]+' |
    sed -E 's/"name":"([^"]*)","slots":/\1:/' | paste -sd ' '
}

# Each output is another one than that before, so that it is seen when it has been looked at.
find_available_hosts_and_slots() {
  local i=1 texts=('a' 'b:2' 'c:2\nd:4' 'e\nf:2' '\n\ng:1\nh' 'i:1\n\n\nj:2' 'k:1\nl:2\n\n\n') seen=()
  list
  plain -np 1000 "${by_script[@]}" --slots-per-host 3 -- true
  driver_says 'hosts: none'
  for text in "${texts[@]}"; do
    # shellcheck disable=SC2059 # it is one
    printf "$text" >hosts.new
    mv hosts.new hosts
    driver_says 'hosts: ' $((++i))
    seen+=("$(listed)")
  done
  comes_to 'a:3, b:2, c:2 d:4, e:3 f:2, g:1 h:3, i:1 j:2, k:1 l:2' \
    "$(printf '%s\n' "${seen[@]}" | paste -sd , | sed 's/,/, /g')"
  : >hosts
  driver_says 'find.sh: printed nothing'
  comes_to 'nothing printed: k:1 l:2' "nothing printed: $(listed)"
  list
  driver_says 'hosts: -k -l'
  comes_to 'a comment alone: ' "a comment alone: $(listed)"
  stop
}
ours_differs 'a script that prints nothing has failed, and the hosts stay; for "no host" it prints a comment'
shows 6.3 find_available_hosts_and_slots

ranks_and_sizes() { places | tr ';' '\n' | awk '{ print $1, $2 }' | in_a_row; }

run_with_hosts() {
  api_probes -np 2 --min-np 2 --max-np 2 -H $A:2,$B:2 -- places 3
  finish 0
  comes_to '0 2; 1 2' "$(ranks_and_sizes)"
}
shows 6.3 run_with_hosts

run_with_discovery_script() {
  list $A:2 $B:2
  api_probes -np 2 --min-np 2 --max-np 2 "${by_script[@]}" -- places 3
  finish 0
  comes_to '0 2; 1 2' "$(ranks_and_sizes)"
}
shows 6.3 run_with_discovery_script

# ---- options -----------------------------------------------------------------------------------------

# The values that each of them has read: "NAME = VALUE".
read_as() { # WORDS
  "$elastic" "$@" --print-config | grep -v '^#' | grep -oE '^[a-z-]+ = [^#]*' | sed 's/ *$//' |
    grep -E '^(np|min-np|max-np|slots-per-host|elastic-timeout|reset-limit|blacklist-cooldown-range|host-discovery-script|ssh-port|start-timeout) '
}

elastic_args() {
  read_as --num-proc 2 --min-num-proc 1 --max-num-proc 4 --slots-per-host 3 --elastic-timeout 200 \
    --reset-limit 5 --blacklist-cooldown-range 120 600 --host-discovery-script ./x.sh --ssh-port 22 \
    --start-timeout 10 >long || die "long names: $(cat long)"
  read_as -np 2 --min-np 1 --max-np 4 --slots 3 --elastic-timeout 200 --reset-limit 5 \
    --blacklist-cooldown-range 120 600 --host-discovery-script ./x.sh -p 22 --start-timeout 10 >short ||
    die "short names: $(cat short)"
  cmp long short || die "long and short names: $(diff long short)"
  comes_to "blacklist-cooldown-range = 2m 10m; elastic-timeout = 3m20s; host-discovery-script = ./x.sh; \
max-np = 4; min-np = 1; np = 2; reset-limit = 5; slots-per-host = 3; ssh-port = 22; start-timeout = 10s" \
    "$(LC_ALL=C sort long | in_a_row)"
}
shows 6.3 elastic_args

# ---- places in the environment -----------------------------------------------------------------------

# Host, rank, size, local rank, local size, cross rank, cross size: what scripts read.
assignments() { # WORDS of the driver
  # shellcheck disable=SC2016 # for the worker's shell
  plain "$@" -- sh -c 'echo place $HOROVOD_HOSTNAME $HOROVOD_RANK $HOROVOD_SIZE $HOROVOD_LOCAL_RANK \
    $HOROVOD_LOCAL_SIZE $HOROVOD_CROSS_RANK $HOROVOD_CROSS_SIZE'
  finish 0
}

get_host_assignments() {
  assignments -np 4 -H $A:2,$B:2
  comes_to 'A 0 4 0 2 0 2; A 1 4 1 2 0 2; B 2 4 0 2 1 2; B 3 4 1 2 1 2' "$(places | letters)"
}
shows 6.3 get_host_assignments

get_host_assignments_elastic() {
  assignments -np 1 --min-np 1 --max-np 2 -H $A:2,$B:2
  comes_to 'A 0 2 0 2 0 1; A 1 2 1 2 0 1' "$(places | letters)"
}
shows 6.3 get_host_assignments_elastic

get_host_assignments_heterogeneous() {
  assignments -np 3 -H $A:1,$B:2
  comes_to 'A 0 3 0 1 0 2; B 1 3 0 2 1 2; B 2 3 1 2 0 1' "$(places | letters)"
}
shows 6.3 get_host_assignments_heterogeneous

# ---- processes ---------------------------------------------------------------------------------------

one_shell() { # SCRIPT: alone on a host, started once
  plain -np 1 -H $A:1 --blacklist-forever --output-filename prints -- sh -c "$1"
}

safe_shell_exec_captures_stdout() {
  one_shell 'echo hello'
  finish 0
  comes_to '[0 A:0] hello' "$(letters <"$out")"
  comes_to 'file: hello' "file: $(cat prints/*/0/1.out)"
}
shows 6.3 safe_shell_exec_captures_stdout

safe_shell_exec_captures_stderr() {
  one_shell 'echo hello >&2'
  finish 0
  comes_to '[0 A:0] hello' "$(grep 'hello$' "$err" | letters)$(cat "$out")"
  comes_to 'file: hello' "file: $(cat prints/*/0/1.err)"
}
shows 6.3 safe_shell_exec_captures_stderr

safe_shell_exec_captures_last_line_wo_eol() {
  one_shell 'printf "one\ntwo"'
  finish 0
  comes_to '[0 A:0] one; [0 A:0] two' "$(letters <"$out" | in_a_row)"
}
shows 6.3 safe_shell_exec_captures_last_line_wo_eol

safe_shell_exec_returns_exit_code() {
  one_shell 'exit 99'
  finish 1
  comes_to 'A:0 exit code 99' "$(codes_by_slot)"
  tail -n 1 "$err" | grep -q 'exit code 99' || die "the last line does not name it: $(tail -n 1 "$err")"
}
ours_differs 'the driver ends with 1 like that of the reference; its last line names the worker and its code'
shows 6.3 safe_shell_exec_returns_exit_code

# The reference skips this one.
safe_shell_exec_interrupts_on_event() {
  one_shell 'echo begun; exec sleep 600'
  await "$out" begun
  stop
  comes_to 'A:0 killed by signal 15' "$(codes_by_slot)"
}
shows 6.3 safe_shell_exec_interrupts_on_event

# The commands' driver is killed, or their agent, which is their parent.
safe_shell_exec_interrupts_on_parent_shutdown() {
  local pid
  trainer='sleep'
  plain -np 1 -H $A:1 --driver-grace 1s -- sleep 600
  driver_says 'is launched'
  await_worker
  kill_driver
  await_end "$pid" || die 'it outlives its driver'
  rm -f "$state/control"
  nothing_left
  new_job
  plain -np 1 -H $A:1 --blacklist-forever -- sleep 600
  driver_says 'is launched'
  await_worker
  kill -KILL "$(parent "$pid")"
  await_end "$pid" || die 'it outlives its parent'
  await_driver
  nothing_left
  comes_to 'gone after SIGKILL of the driver, and of its parent' \
    'gone after SIGKILL of the driver, and of its parent'
}

# In $pid, when it runs what it should.
await_worker() {
  local until=$((SECONDS + PATIENCE))
  until pid=$(workers) && [ -n "$pid" ]; do
    [ $SECONDS -lt $until ] || die 'there is no worker'
    timeout $NAP tail -f /dev/null
  done
}
shows 6.3 safe_shell_exec_interrupts_on_parent_shutdown

# ---- lines -------------------------------------------------------------------------------------------

comes_out_as() { # EXPECTED SCRIPT
  one_shell "$2"
  finish 0
  comes_to "$1" "$(letters <"$out" | sed 's/\r/<CR>/g' | in_a_row)"
}

prefix_connection_lines() {
  comes_out_as '[0 A:0] one; [0 A:0] ; [0 A:0] two; [0 A:0] three' 'printf "one\n\ntwo\nthree"'
}
shows 6.3 prefix_connection_lines

# As progress bars are written.
prefix_connection_carriage_return() {
  comes_out_as '[0 A:0] 10%<CR>[0 A:0] 20%<CR>[0 A:0] done<CR>' 'printf "10%%\r20%%\rdone\r\n"'
}
shows 6.3 prefix_connection_carriage_return

# The two bytes of a letter come one by one.
prefix_connection_utf8() {
  mkfifo next
  one_shell 'printf "caf\303"; echo half >&2; read -r x <next; printf "\251 au lait\n"'
  await "$err" '\[0 .*\] half'
  echo >next
  finish 0
  comes_to '[0 A:0] café au lait' "$(letters <"$out")"
}
shows 6.3 prefix_connection_utf8

# The files hold the output as it was printed.
prefix_connection_without_index() {
  one_shell 'printf "one\n\ntwo\rthree"'
  finish 0
  comes_to 'one\n\ntwo\rthree\n' "$(od -An -c prints/*/0/1.out | tr -d ' \n')"
}
shows 6.3 prefix_connection_without_index

# ---- the library -------------------------------------------------------------------------------------

# Two ranks that began with 101 and 102.
elastic_state() {
  api_probes -np 2 -H $A:1,$B:1 -- state
  finish 0
  comes_to "2x after 1 more and a restore 101; 2x after 5 more, a commit, 7 more and a restore 106; \
2x after the sync 101" "$(sed -n 's/.*] \(after .*\)/\1/p' "$out" | counted)"
}
shows 6.3 elastic_state

# In each epoch each number from 0 to 61 once, by any rank.
once_each() {
  awk '/\] batch / { for (i = 8; i <= NF; i++) { used[$4 " " $i]++; total[$4]++ } }
    END { for (e in total) {
            for (i = 0; i < 62; i++)
              if (used[e " " i] != 1) {
                print "epoch " e ": " i " is used " used[e " " i] + 0 " times"
                exit
              }
            epochs++ }
          print epochs " epochs with each of 62 samples once" }' "$out"
}

# How many batches the round of N ranks had of epoch E, by those of rank 0.
batches() { # E N
  grep -cE "^\[0 .* batch $1 [0-9]+ of $2:" "$out"
}

order_of() { sed -nE "s/^\[0 .* batch $1 [0-9]+ of [0-9]+: //p" "$out" | paste -sd ' '; }

# Two ranks; two more come in the middle of the second epoch.
elastic_sampler() {
  list $A:2
  api_probes -np 2 --max-np 4 "${by_script[@]}" -- sampler 4
  driver_says 'all 2 train'
  list $A:2 $B:2
  finish 0
  comes_to '4x after a restore: the same batch' "$(sed -n 's/.*] \(after a restore: .*\)/\1/p' "$out" | counted)"
  comes_to '3 epochs with each of 62 samples once' "$(once_each)"
  comes_to 'the second: 5 batches of 2 ranks, 6 of 4' \
    "the second: $(batches 1 2) batches of 2 ranks, $(batches 1 4) of 4"
  [ "$(order_of 0)" != "$(order_of 1)" ] || die 'the second epoch has the order of the first'
}
ours_differs 'no sample is used twice to fill a batch up: the last one is smaller'
shows 6.3 elastic_sampler

conformance_end
