#!/usr/bin/env bash
# A taken-over agent of one host speaks for other hosts, with absurd numbers, and prints gigabytes for workers that never
# were. The harm that is looked for: a worker of another host that ends, a driver that ends or grows, forged output, a
# lie that is not told. Its own host it may harm: that one is recovered from.
#
#     rogue_agent.sh ELASTIC CHAOS_TRAINER ROGUE
. "$(dirname "$0")/lib.sh"
rogue=$(realpath "$3")
attack_begin "$@"
outputs=20000
[ "${ATTACK:-small}" = small ] || outputs=400000
# freed memory is not kept for the report of a sanitizer, so that growth is the driver's own
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}quarantine_size_mb=1

memory() { sed -n 's/^VmRSS:[[:space:]]*\([0-9]*\) kB/\1/p' "/proc/$driver/status"; }

begin_job 3
find_agent 127.0.0.3
kill -STOP "$agent" # the taken-over agent is the attacker from now on
others=$({ workers HVD_HOST=127.0.0.1 && workers HVD_HOST=127.0.0.2; } | xargs)
before=$(memory)
"$rogue" "$state" 127.0.0.3 127.0.0.2 "$outputs" >rogue.out 2>&1 || die "the rogue agent: $(cat rogue.out)"
cat rogue.out
after=$(memory)
say_line "the driver: $before kB before, $after kB after"
[ "$after" -lt $((before + 65536)) ] || die "the driver has grown from $before to $after kB"
for worker in $others; do is_alive "$worker" || die "the worker $worker of another host was ended"; done
[ "$others" = "$({ workers HVD_HOST=127.0.0.1 && workers HVD_HOST=127.0.0.2; } | xargs)" ] || die 'other hosts have other workers'
! grep -q FORGED "$out" || die 'forged output is shown'
grep -q "127.0.0.3: a statement of this host's agent is refused: the agent sends OUTPUT about worker #1, which runs on 127.0.0." "$err" ||
  die 'words for others are not told'
grep -q 'refused, term: the agent obeys term 9223372036854775807' rogue.out || die 'the term is not refused'
grep -q 'refused, another host: the agent says that its host is 127.0.0.2, but has the key of host 127.0.0.3' rogue.out ||
  die 'another host is believed'
grep -q '127.0.0.3: .*the greatest possible check is' "$err" || die 'the number is not told'
! grep -qE 'blacklist: 127.0.0.[12].* failed' "$err" || die 'another host was charged'
[ "$(grep -c 'agent is refused' "$err")" -lt 200 ] || die 'the lies fill the log'
kill -CONT "$agent"
train 3 20 # the true agent of the host is back, and its slot is used
end_job
