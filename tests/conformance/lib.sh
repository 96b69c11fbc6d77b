# shellcheck shell=bash disable=SC2154
# Conformance scenarios: black-box runs of hvd-elastic, each said in a few lines.
#
#     . "$(dirname "$0")/lib.sh"
#     conformance_begin "$@"                    # GROUP.sh ELASTIC TRAINER [NAME...]
#
#     scenario 6.1 single_rank_failure SIGKILL  # section of the reference, its test, the variant
#     hosts_from 0 localhost:2 127.0.0.1:2      # what discovery prints from 0 epochs on
#     options -np 4 --min-np 2 --max-np 4 "${reference_blacklist[@]}"
#     exits 1.0 kill 0                          # epoch 1, batch 0: who began as rank 0
#     expects '4 localhost 0 1' \
#             '2 127.0.0.1 2 2' '2 127.0.0.1 2 2' # each epoch: size, rank 0's host, start rank, round
#     play
#
#     conformance_end
#
# All of these are optional but scenario and play:
#
#     hosts_from EPOCHS HOST:SLOTS...   what the discovery script prints when so many epochs are done;
#                                       no host at all is allowed. As long as there is one of these,
#                                       every epoch ends with the driver having seen the new list
#     hosts_fixed HOST:SLOTS...         -H instead
#     options WORDS...                  of hvd-elastic; may be repeated. The words that `start` in
#                                       tests/shell/lib.sh gives stands before it: above all a
#                                       blacklist that forgives at once
#     trains WORDS...                   of epoch_trainer: --epochs 10 --batch-ms 5
#     exits EPOCH.BATCH HOW RANK...     HOW: raise (train returns an error: exit code 1), kill
#                                       (SIGKILL), and raise-once, kill-once; RANK is the one that a
#                                       process had in its first round, its start rank, or RANK@HOST;
#                                       all that are due at one batch fail in the same round
#     changes_after EPOCH...            after these go on in another round only
#     newcomers_wait                    who is started after the first epoch boots until the others
#                                       wait for a change (changes_after): so no worker joins earlier
#     gates_after EPOCH...              after these go on when `open_gate EPOCH` was said
#     expects LINE...                   as above; a field may be *; a last line 'again N': N times
#                                       or more what stands before it
#     ends CODE [REGEX]                 exit code of the driver (0), and its last line
#     says REGEX, never_says REGEX      a line of the driver's log
#     ours TEXT                         why we differ from the reference here: shown under the result
#     while_it_runs FUNCTION            called when the driver has been started, in the scenario's
#                                       folder, with all of tests/shell/lib.sh (workers, ask, await_round,
#                                       $driver, ...) and with await_epoch N, open_gate EPOCH
#     afterwards FUNCTION               called when all is over and found right
#     worker_is WORDS...                a worker other than epoch_trainer
#     played_by FUNCTION                instead of starting a driver and waiting for its end: the
#                                       function does both, with launch and finish_as_expected
#
# What is always checked: the driver's exit code; epochs come in order, each with all its batches and
# commits as without any failure; no process, socket or file is left. Each scenario is run in a subshell
# in a folder of its own: `die REASON` in its functions makes it fail, not the others.
# BODY_KEEP=1 keeps the folders.
. "$(dirname "${BASH_SOURCE[0]}")/../shell/lib.sh"

# The reference's rule for failures: the host of one that fails is out, for ever. Ours: only the slot, for a time.
# When nothing is said the time is 10 to 20 s at first; here no slot may be back before the end of a slow job.
# shellcheck disable=SC2034 # for the groups
reference_blacklist=(--blacklist-scope host --blacklist-forever)
# shellcheck disable=SC2034
our_blacklist=(--blacklist-scope slot --blacklist-cooldown-range 600 3600)

# Nothing that a scenario expects depends on these; they are long, for a machine that is busy.
PATIENT=(--discovery-interval 50ms --gather 20s --agent-timeout 3m --lease 30s)
# For jobs that are to end because hosts are missing. The wait for the first round counts too, so the time is
# much longer than a start on a busy machine.
# shellcheck disable=SC2034 # for the groups
ends_when_short=(--elastic-timeout 20s)
BATCHES=10

played=0 failed=0

conformance_begin() { # ELASTIC TRAINER [NAME...]
  programs=("$(realpath "$1")" "$(realpath "$2")")
  wanted=("${@:3}")
  report=$(mktemp "${TMPDIR:-/tmp}/conformance-XXXXXX")
  trap 'rm -f "$report"' EXIT
  trap 'exit 130' INT TERM
}

# ---- what a scenario says ----------------------------------------------------------------------------

scenario() { # SECTION NAME [VARIANT]
  section=$1 name=$2 variant=${3:-}
  hosts=() fixed='' words=() training=() failures='' changes='' waiting='' gates=()
  lines=() end_code=0 end_text='' said=() unsaid=() why='' during='' after='' worker=() player='' shown=''
}

hosts_from() { hosts+=("$*"); }
hosts_fixed() {
  local IFS=,
  fixed=$*
}
options() { words+=("$@"); }
trains() { training+=("$@"); }
exits() { # EPOCH.BATCH HOW RANK...
  local IFS=,
  failures+="${failures:+ }$1:$2:${*:3}"
}
changes_after() { changes=$*; }
newcomers_wait() { waiting=1; }
gates_after() { gates+=("$@"); }
expects() { lines+=("$@"); }
ends() { end_code=$1 end_text=${2:-}; }
says() { said+=("$1"); }
never_says() { unsaid+=("$1"); }
ours() { why=$*; }
while_it_runs() { during=$1; }
afterwards() { after=$1; }
worker_is() { worker=("$@"); }
played_by() { player=$1; }

# ---- how it is played --------------------------------------------------------------------------------

# hosts.N is what there is from N epochs on. A look counts when all of it is printed.
write_discovery() {
  local list host from
  for list in "${hosts[@]}"; do
    read -r -a list <<<"$list"
    from=${list[0]}
    for host in "${list[@]:1}"; do echo "$host"; done >"hosts.$from"
    [ -s "hosts.$from" ] || echo '# no host' >"hosts.$from" # nothing at all would be a failure
  done
  cat >discover <<END
#!/bin/sh
n=\$(wc -l <"$log")
looked=\$n
while [ ! -e "$folder/hosts.\$n" ]; do n=\$((n - 1)); done
cat "$folder/hosts.\$n"
echo "\$looked" >>"$folder/looks"
END
  chmod +x discover
}

prepare() {
  local gate
  test_begin "${programs[@]}"
  new_job
  log=$folder/log
  mkdir once gates
  : >"$log"
  : >looks
  for gate in "${gates[@]}"; do : >"gates/$gate.shut"; done
  [ ${#hosts[@]} = 0 ] || write_discovery
}

# launch WORDS...: a driver with all that the scenario says, and these options.
# shellcheck disable=SC2120 # some say none
launch() {
  local where=() command=("$trainer" --log "$log" --say "$say" --once "$folder/once"
    --gates "$folder/gates" --batches "$BATCHES" ${failures:+--exits "$failures"}
    ${changes:+--changes "$changes"} ${waiting:+--door "$folder/door"})
  if [ -n "$fixed" ]; then
    where=(-H "$fixed")
  elif [ ${#hosts[@]} -gt 0 ]; then
    where=(--host-discovery-script ./discover)
    command+=(--looks "$folder/looks")
  fi
  if [ ${#worker[@]} -gt 0 ]; then command=("${worker[@]}"); else command+=("${training[@]}"); fi
  start "${PATIENT[@]}" "${where[@]}" "${words[@]}" "$@" -- "${command[@]}"
}

await_epoch() { await "$log" '^[0-9]' "$1"; } # until N epochs are done
open_gate() { : >"$folder/gates/$1.open"; }

# ---- what has come of it -----------------------------------------------------------------------------

# A line of the log is: epoch, batch, commits, host, start rank, rank, size, rounds of the state, number
# of the round. The rounds of the state are what the reference calls the rendezvous: one that ends
# before anything was committed in it does not count.
seen_lines() { awk '{ print $7, $4, $5, $8 }' "$log"; }

show_lines() { awk '{ printf "%s%s", (NR > 1 ? ", " : ""), $0 }'; }

matches() { # SEEN PATTERN
  local pattern=${2//./\\.}
  [[ $1 =~ ^${pattern//\*/[^ ]*}$ ]]
}

check_lines() {
  local seen line i=0 last
  mapfile -t seen < <(seen_lines)
  for line in "${lines[@]}"; do
    if [[ $line =~ ^again\ ([0-9]+)$ ]]; then
      [ ${#seen[@]} -ge $((i + BASH_REMATCH[1])) ] || return 1
      while [ "$i" -lt ${#seen[@]} ]; do matches "${seen[i++]}" "$last" || return 1; done
    else
      matches "${seen[i++]:-}" "$line" || return 1
    fi
    last=$line
  done
  [ "$i" = ${#seen[@]} ]
}

# Nothing was trained twice or left out, after any event.
check_epochs() {
  awk -v batches="$BATCHES" '
    $1 != NR - 1 || $2 != batches || $3 != batches + (NR - 1) * (batches + 1) || $6 != 0 {
      print; exit 1 }' "$log" >found || die "an epoch that is out of order: $(cat found)"
}

finish_as_expected() {
  local text
  await_driver
  [ ${#lines[@]} = 0 ] || check_lines ||
    die "expected '$(printf '%s\n' "${lines[@]}" | show_lines)', seen '$(seen_lines | show_lines)'"
  [ "$code" = "$end_code" ] || die "exit code $code, expected $end_code: $(tail -n 1 "$err")"
  [ -z "$end_text" ] || tail -n 1 "$err" | grep -qE -- "$end_text" ||
    die "expected as the last line '$end_text', seen '$(tail -n 1 "$err")'"
  for text in "${said[@]}"; do
    grep -qE -- "$text" "$err" || die "the driver has not said '$text'"
  done
  for text in "${unsaid[@]}"; do
    ! grep -E -- "$text" "$err" >found || die "the driver has said '$(head -n 1 found)'"
  done
  check_epochs
  nothing_left
}

# In a line: $shown, if it was said what that is.
sum_up() {
  if [ -n "$shown" ]; then
    say_line "$shown"
    return
  fi
  awk '{ size = size " " $7; first = first " " $4 "#" $5; round = round " " $8 }
    END { if (NR) printf "sizes%s; rank 0 is%s; rounds%s; ", size, first, round }' "$log"
  echo "exit code $code"
}

play_it() (
  prepare
  if [ -n "$player" ]; then
    "$player"
  else
    launch
    [ -z "$during" ] || "$during"
    finish_as_expected
  fi
  [ -z "$after" ] || "$after"
  sum_up >&3
)

is_wanted() {
  local one
  [ ${#wanted[@]} -gt 0 ] || return 0
  for one in "${wanted[@]}"; do [ "$one" != "$name" ] || return 0; done
  return 1
}

play() {
  local what="$section $name${variant:+ ($variant)}" summary
  is_wanted || return 0
  played=$((played + 1))
  summary=$(play_it 3>&1 >"$report" 2>&1)
  case $? in
    0) say_line "ok     $what: $summary" ;;
    130) exit 130 ;;
    *)
      failed=$((failed + 1))
      say_line "FAILED $what: $(sed -n '1s/^FAILED: //p' "$report")"
      sed 's/^/    /' "$report"
      ;;
  esac
  [ -z "$why" ] || say_line "       ours: $why"
}

conformance_end() {
  if [ "$played" = 0 ]; then
    say_line "no scenario here is called ${wanted[*]}"
    exit 2
  fi
  if [ "$failed" -gt 0 ]; then
    say_line "$played scenarios, $failed not as expected"
    exit 1
  fi
  say_line "$played scenarios, all as expected"
}
