#!/usr/bin/env bash
# A rogue driver listens where the driver of a job did: without any key, with the key of another host, with a key of an
# epoch that is not used, with the right keys and an older term, and with the key of one host and numbers that cannot
# be. The harm that is looked for: an agent that obeys, a worker that ends, training that stops, an agent that grows or
# ends, an agent that does not find the true driver again.
#
#     rogue_driver.sh ELASTIC CHAOS_TRAINER ROGUE
. "$(dirname "$0")/lib.sh"
rogue=$(realpath "$3")
attack_begin "$@"
# freed memory is not kept for the report of a sanitizer, so that growth is the agent's own
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}quarantine_size_mb=1

memory() { sed -n 's/^VmRSS:[[:space:]]*\([0-9]*\) kB/\1/p' "/proc/$1/status"; }
all_workers() { workers | sort -n | xargs; }

# rogue_is MODE [HOST]: in $rogue_out what it prints, until rogue_ends.
rogue_is() {
  rogue_out=$folder/rogue.$1
  : >"$rogue_out"
  "$rogue" "$state" "$@" >>"$rogue_out" 2>&1 &
  rogue_pid=$!
  helpers+=("$rogue_pid")
  await "$rogue_out" '^listens'
}

rogue_ends() {
  kill "$rogue_pid"
  wait "$rogue_pid" || die "the rogue driver, $1: $(cat "$rogue_out")"
  [ ! -e rogue.was.here ] || die 'a command of the rogue driver was run'
  train 3 5 # without a driver
  [ "$(all_workers)" = "$before" ] || die "$1: workers have ended: $before before, $(all_workers) now"
}

begin_job 3
before=$(all_workers)
kill_driver
resume # the agents have obeyed a second term
await "$err" 'term 2, 3 workers known'
train 3 20
await "$err" 'the agent of this host is back|an agent of this host says hello' 6
kill_driver
for mode in other epoch; do
  rogue_is "$mode"
  await "$rogue_out" 'turned away' 2
  rogue_ends "$mode"
  say_line "$mode: refused"
done
rogue_is nokey
await "$rogue_out" '^answered' 6
rogue_ends nokey
say_line 'nokey: refused'
rogue_is term
await "$rogue_out" '^bye .* is over' 3
rogue_ends term
say_line "term: $(grep -m 1 '^bye' "$rogue_out")"

find_agent 127.0.0.3
grown=$(memory "$agent")
rogue_is absurd 127.0.0.3
await "$rogue_out" '^heard to the end'
rogue_ends absurd
is_alive "$agent" || die 'the agent was ended by absurd numbers'
say_line "absurd: the agent: $grown kB before, $(memory "$agent") kB after"
[ "$(memory "$agent")" -lt $((grown + 65536)) ] || die "the agent has grown from $grown to $(memory "$agent") kB"
resume
train 3 20
[ "$(all_workers)" = "$before" ] || die "workers have ended: $before before, $(all_workers) now"
no_harm
end_job
