#!/usr/bin/env bash
# The harm: an observer reads a HELLO of meet or the greeting of a link, and sends it again on a connection of its own. It
# is taken for the member: it takes the place of a living line, and rounds are revoked when it hangs up; or it wins the
# place of a link that is being made.
#
#     replay.sh ELASTIC CHAOS_TRAINER FLOOD WIRETAP
. "$(dirname "$0")/lib.sh"
attack_begin "$@"
must_be_alone
wiretap=$(realpath "$4")

begin_job 3
"$wiretap" "$folder/capture" replay >"$folder/tapped" 2>&1 &
tap=$!
taps() { [ -s "$folder/tapped" ] || ! is_alive "$tap"; }
await_true 'a word of the observer' taps
grep -q listens "$folder/tapped" || { end_job; skip "$(cat "$folder/tapped")"; }
for ((i = 0; i < 2 * times; i++)); do
  join 4
done
kill -TERM "$tap"
wait "$tap" || die "a replay was answered: $(tail -1 "$folder/tapped")"
say_line "$(tail -1 "$folder/tapped")"
tried=$(sed -n 's/.* \([0-9]*\) replayed.*/\1/p' "$folder/tapped")
[ "${tried:-0}" -ge 10 ] || die "the observer has replayed only ${tried:-0} words, so this shows nothing"
no_harm
end_job
