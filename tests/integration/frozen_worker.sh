#!/usr/bin/env bash
# SIGSTOP to a worker of a real training: status and hosts name that worker, and no other one, while its silence grows;
# when it goes on, the commits do.
#
#     frozen_worker.sh ELASTIC COUNT
. "$(dirname "$0")/../shell/lib.sh"
test_begin "$@"

# status REGEX: until status --json, or the verb in $verb, has this; in the file answer.
status() {
  local until=$((SECONDS + PATIENCE))
  until ask "${verb:-status}" --json >answer && grep -qE "$1" answer; do
    [ $SECONDS -lt $until ] || die "'$1' is not in $(cat answer)"
    timeout $NAP tail -f /dev/null
  done
}
field() { sed -n "s/.*\"$1\":\"\{0,1\}\([0-9.]*\).*/\1/p" answer; }
# above A B: A is a larger number than B.
above() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a + 0 > b + 0) }'; }
# of_worker HOST SLOT FIELD: from hosts --json in the file answer.
of_worker() {
  grep -oE "\"name\":\"$1\".*" answer | grep -oE "\"slot\":$2,[^}]*" | head -n 1 | sed -n "s/.*\"$3\":\"\{0,1\}\([0-9.]*\).*/\1/p"
}

# past INDEX: a commit after that one of round 1 is the newest one now.
past() { ask status --json >answer && above "$(field newest | cut -d. -f2)" "$1"; }

start -np 4 -H 127.0.0.1:2,127.0.0.2:2 --beat 500ms --lease 1h "$trainer" "$say" "$folder/stop"
await_round 4

# All is well: commits are made, and no worker lags.
status '"newest":"1\.[1-9][0-9]*".*"commits_per_s":[0-9]*[1-9].*"lagging":\[\]'
before=$(field newest | cut -d. -f2)
await_true "a commit after 1.$before" past "$before"

# One is frozen. All stand still with it, as they train together; only that one is silent.
frozen=$(for pid in $(workers HVD_HOST=127.0.0.2); do [ "$(variable "$pid" HVD_SLOT)" != 1 ] || echo "$pid"; done)
kill -STOP "$frozen"
status '"lagging":\[\{"worker":"127\.0\.0\.2:1",[^}]*"silent":true,"behind":false\}\]'
silence=$(field heard_s)
age=$(field newest_age_s)
verb=hosts status '"silent":true'
for other in '1 0' '1 1' '2 0'; do
  # shellcheck disable=SC2086 # two words
  above "$(of_worker 127.0.0.2 1 heard_s)" "$(of_worker 127.0.0.$other heard_s)" ||
    die "127.0.0.$other was heard before the frozen worker: $(cat answer)"
done
[ "$(grep -o '"silent":true' answer | wc -l)" = 1 ] || die "others are silent: $(cat answer)"
status '"lagging":\[\{"worker":"127\.0\.0\.2:1"'
above "$(field heard_s)" "$silence" || die "the silence does not grow: $silence, then $(cat answer)"
above "$(field newest_age_s)" "$age" || die "the commit does not age: $age, then $(cat answer)"
ask status >answer
grep -qE '^silent     127\.0\.0\.2:1 \(rank [0-3]\) for [^ ]* at commit 1\.[0-9]+$' answer || die "not named: $(cat answer)"
grep -qE '^commits    newest 1\.[0-9]+, .* ago' answer || die "no commits: $(cat answer)"

# It goes on.
stood=$(sed -n 's/^commits    newest 1\.\([0-9]*\).*/\1/p' answer)
kill -CONT "$frozen"
status '"lagging":\[\]'
await_true "a commit after 1.$stood" past "$stood"
: >"$folder/stop"
finish 0
say_line "worker 127.0.0.2:1 was named as silent, then went on past commit 1.$stood"
