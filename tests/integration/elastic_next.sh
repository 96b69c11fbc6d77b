#!/usr/bin/env bash
# A program with a main loop of its own (hvd_elastic_next): its threads take turns, and a rank of each of the
# first rounds dies.
#
#     elastic_next.sh ELASTIC TRAINER DEATHS
. "$(dirname "$0")/../shell/lib.sh"
test_begin "$@"
deaths=$3

for words in '-H 127.0.0.1:3' '-H 127.0.0.1:1,127.0.0.2:1,127.0.0.3:1'; do
  new_job
  # shellcheck disable=SC2086 # words
  start -np 3 --min-np 2 $words "$trainer" 60 "$deaths" "$say"
  finish 0
  died=$(grep -cE "warning job: [^ ]+#[0-9]+: killed by signal 9" "$err")
  [ "$died" -ge $((deaths / 2)) ] || die "only $died workers have died with $words"
  done_by=$(grep -c '^done .* 60$' "$say")
  [ "$done_by" -ge 2 ] || die "$done_by workers are done with $words"
  say_line "$died deaths, $done_by workers are done, $words"
done

# Without a driver it is a job of one worker.
"$trainer" 60 0 "$say.alone" || die "alone: exit code $?"
grep -q '^done 0 1 60$' "$say.alone" || die "alone: $(cat "$say.alone")"
