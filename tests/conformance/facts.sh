# shellcheck shell=bash disable=SC2154
# For scenarios that a table of epochs cannot say: what has come of a job in a few words, compared with
# what should. Sourced after lib.sh.
#
#     rank_and_size() {
#       api_probes -np 4 -H $A:2,$B:2 -- places 5
#       finish 0
#       comes_to '4x exit code 0' "$(codes)"    # expected, seen
#     }
#     ours_differs 'why'                       # if it does: shown under the result
#     shows 6.2 rank_and_size                  # plays it: section of the reference, function [variant]
#
# Hosts are the letters A, B, C ... of 127.0.0.1, 127.0.0.2 ... wherever something is compared.

# shellcheck disable=SC2034 # for the groups
A=127.0.0.1 B=127.0.0.2 C=127.0.0.3 D=127.0.0.4

shows() { # SECTION FUNCTION [VARIANT]: what was said by ours before goes with it
  local text=$next_ours
  next_ours=''
  scenario "$@"
  [ -z "$text" ] || ours "$text"
  played_by "$2"
  play
}

next_ours=''
ours_differs() { next_ours=$*; } # of the next shows: why, in a sentence

# comes_to EXPECTED SEEN
comes_to() {
  [ "$2" = "$1" ] || die "expected '$1', seen '$2'"
  shown+="${shown:+; }$1"
}

# ---- jobs --------------------------------------------------------------------------------------------

# A program that was built beside the epoch_trainer.
built() { say_line "$(dirname "${programs[1]}")/$1"; }

# WORDS of the driver -- WORDS of the worker: into two arrays.
split_words() {
  for_driver=()
  while [ $# -gt 0 ] && [ "$1" != -- ]; do
    for_driver+=("$1")
    shift
  done
  shift
  for_worker=("$@")
}

# sum_trainers WORDS -- WORDS: they train, and check each sum themselves (tests/workers/sum_trainer.c). Started by the
# words of $starter, if there are any.
starter=()
sum_trainers() {
  split_words "$@"
  final=$folder/$job.final
  made=$folder/$job.made
  : >"$made"
  : >"$final"
  trainer=$(built sum_trainer)
  start "${PATIENT[@]}" "${for_driver[@]}" -- "${starter[@]}" "$trainer" --step-ms 5 --say "$say" --made "$made" \
    --final "$final" --slow-until "$go" "${for_worker[@]}"
}

# api_probes WORDS -- WORDS: they say what they find (api_probe.c).
api_probes() {
  split_words "$@"
  trainer=$(built api_probe)
  start "${PATIENT[@]}" "${for_driver[@]}" -- "$trainer" "${for_worker[@]}"
}

# plain WORDS -- COMMAND...: that never calls the library.
plain() {
  split_words "$@"
  start "${PATIENT[@]}" "${for_driver[@]}" -- "${for_worker[@]}"
}

# list HOST:SLOTS...: what ./find.sh finds from now on; nothing: no host.
list() {
  printf '%s\n' "${@:-# nobody}" >hosts.new
  mv hosts.new hosts
  [ -x find.sh ] || {
    printf '#!/bin/sh\ncat hosts\n' >find.sh
    chmod +x find.sh
  }
}
by_script=(--host-discovery-script ./find.sh)

stop() {
  ask stop >/dev/null || die "stop: exit code $?"
  finish 143
}

# ---- what has come of it -----------------------------------------------------------------------------

letters() { sed -E 's/127\.0\.0\.1\b/A/g; s/127\.0\.0\.2\b/B/g; s/127\.0\.0\.3\b/C/g; s/127\.0\.0\.4\b/D/g'; }
in_a_row() { paste -sd ';' | sed 's/;/; /g'; }

driver_says() { await "$err" "$@"; }
lines_with() { grep -cE -- "$1" "$err"; }

# Each round by rank: "A:0,1 B:0,1; B:0,1".
rounds() { sed -n 's/.* round [0-9]*: by rank //p' "$err" | letters | in_a_row; }

# How many were in each: "4 2".
sizes() { sed -nE 's/.* round [0-9]+ \(([a-z]+)\): size ([0-9]+),.*/\2/p' "$err" | paste -sd ' '; }

# The ends of the workers: "A:0 exit code 0; A:1 killed by signal 9".
codes_by_slot() {
  sed -nE 's/.* job: (127[^ ]*)#[0-9]+: (exit code [0-9]+|killed by signal [0-9]+).*/\1 \2/p' "$err" |
    sort | letters | in_a_row
}

# How many with which: "4x exit code 0".
codes() {
  sed -nE 's/.* job: 127[^ ]*#[0-9]+: (exit code [0-9]+|killed by signal [0-9]+).*/\1/p' "$err" |
    counted
}

counted() { LC_ALL=C sort | uniq -c | awk '{ $1 = $1 "x"; print }' | in_a_row; }

# The places that api_probes have printed, by rank.
places() { sed -nE 's/^\[[^]]*\] place //p' "$out" | sort -n | in_a_row; }

# Sum trainers that came to the end have made all STEPS, with the sum of 1 to STEPS.
right_sums() { # STEPS
  local right="$1 $(($1 * ($1 + 1) / 2))"
  [ -s "$final" ] || die 'nobody came to the end'
  ! grep -v " $right\$" "$final" >found || die "an end that is not '$right': $(cat found)"
}

# No step was made twice, or left out, by any rank: no rank went back.
no_step_twice() {
  awk '{ key = $2 " " $3 } seen[key]++ { print "rank and step " key " twice"; exit 1 }' "$made" >found ||
    die "$(cat found)"
}
