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
  start -np 3 --min-np 2 $words "$trainer" 60 die "$deaths" "$say"
  finish 0
  died=$(grep -cE "warning job: [^ ]+#[0-9]+: killed by signal 9" "$err")
  [ "$died" -ge $((deaths / 2)) ] || die "only $died workers have died with $words"
  done_by=$(grep -c '^done .* 60$' "$say")
  [ "$done_by" -ge 2 ] || die "$done_by workers are done with $words"
  grep -q '^slot [0-9]* is found' "$say" || die "no worker finds the bytes of a dead one with $words"
  say_line "$died deaths, $done_by workers are done, $words"
done

# A rank of each of the first rounds revokes its round: all go back to the last commit, and no worker is charged.
new_job
start -np 3 -H 127.0.0.1:3 "$trainer" 60 revoke 4 "$say"
finish 0
[ "$(grep -c '^revoked ' "$say")" -ge 10 ] || die "not all ranks hear that a round is revoked: $(cat "$say")"
[ "$(grep -c '^done .* 60$' "$say")" = 3 ] || die 'not all workers are done'
grep -q 'has revoked the round: the loss is not a number' "$err" || die 'the driver does not say why'
! grep -q 'warning job:.*exit\|warning job:.*killed' "$err" || die 'a worker has failed'
say_line 'four rounds revoked'

# A rank fails with a reason in words, which the driver shows in one line and keeps.
new_job
start -np 3 --min-np 2 -H 127.0.0.1:3 "$trainer" 60 fail 1 "$say"
finish 0
grep -q 'ValueError: the loss is not a number' "$err" || die 'the driver does not show the reason'
say_line 'a failure in words'

# Without a driver it is a job of one worker.
"$trainer" 60 die 0 "$say.alone" || die "alone: exit code $?"
grep -q '^done 0 1 60$' "$say.alone" || die "alone: $(cat "$say.alone")"
