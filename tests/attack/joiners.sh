#!/usr/bin/env bash
# A thousand hosts join a job in a second, with the right token, while it trains. The harm that is looked for: the
# heartbeats of a living host time out, a round is revoked, a host is charged, one of the thousand is not let in, the
# driver grows without bound. In the large form real hvd-agent processes join, too.
#
#     joiners.sh ELASTIC TRAINER JOINERS
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/../shell/join.sh"
joiners=$(realpath "$3")
test_begin "$1" "$2"
count=100 real=0
[ "${ATTACK:-small}" = small ] || count=1000 real=50
join_token token
port=$((20000 + $$ % 10000))
made=$folder/made
: >"$made"

# of the driver: CPU time in ms, memory in kB now and at most
cpu() { awk -v hz="$(getconf CLK_TCK)" '{ print int(($14 + $15) * 1000 / hz) }' "/proc/$driver/stat"; }
memory() { sed -n "s/^$1:[[:space:]]*\([0-9]*\) kB/\1/p" "/proc/$driver/status"; }
# the longest time from one step to the next since line LINE, in ms, is not asserted: other tests run beside
steps() { await "$made" . $(($(wc -l <"$made") + $1)); }

start -np 2 --max-np 2 --discovery join --token-file token --port $port --listen 127.0.0.1 --beat 200ms --lease 5s \
  "$trainer" --step-ms 5 --say "$say" --made "$made"
join_host a '' "127.0.0.1:$port"
join_host b '' "127.0.0.1:$port"
await_round 2
steps 100
cpu_before=$(cpu) memory_before=$(memory VmRSS)
BODY_TEST=$folder "$joiners" crowd "127.0.0.1:$port" token $count >crowd.out 2>&1 &
crowd=$!
await crowd.out "^$count hosts have joined"
cpu_after=$(cpu) memory_after=$(memory VmRSS)
cat crowd.out
say_line "the driver: $((cpu_after - cpu_before)) ms of CPU, memory $memory_before kB before, $memory_after kB after," \
  "$(memory VmHWM) kB at most"
steps 200
cpu_before=$(cpu) began=$EPOCHREALTIME
steps 1000
say_line "then $((($(cpu) - cpu_before) * 100 / $(ms_since "$began"))) % of a CPU, with heartbeats five times a second"
! grep -q 'closed after its welcome' crowd.out || die "a host was let go: $(grep 'closed after' crowd.out)"
if [ $real -gt 0 ]; then
  began=$EPOCHREALTIME cpu_before=$(cpu)
  for ((i = 1; i <= real; i++)); do join_host "r$i" '' "127.0.0.1:$port"; done
  for ((i = 1; i <= real; i++)); do await "join-r$i.log" 'has joined the job'; done
  say_line "$real real processes: in after $(ms_since "$began") ms, $(($(cpu) - cpu_before)) ms of the driver's CPU"
  for ((i = 1; i <= real; i++)); do join_leave "r$i"; done
  for ((i = 1; i <= real; i++)); do join_left "r$i"; done
fi
kill $crowd
await_end $crowd || die 'the crowd does not end'
steps 200
no_harm
! grep -q 'silent' "$err" || die "heartbeats have timed out: $(grep silent "$err")"
ask stop || die 'stop'
await_driver
join_left a
join_left b
nothing_left
