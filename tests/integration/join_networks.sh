#!/usr/bin/env bash
# Hosts that join by themselves: four network namespaces, in each `hvd-agent --join` with a token, and no
# sshd. Turn after turn two of them leave, one returns, the driver is killed and comes back on
# another address, and the second one returns. No round is ever revoked, so no step is lost.
#
#     join_networks.sh ELASTIC TRAINER TURNS
. "$(dirname "$0")/../shell/lib.sh"
. "$(dirname "$0")/../shell/networks.sh"
. "$(dirname "$0")/../shell/join.sh"
networks_alone "$@"
test_begin "$@"
turns=$3
for n in 1 2 3 4; do network_join $n; done
join_token token

lead() { # ADDRESS
  start -np 4 --min-np 2 --discovery join --token-file token --port 7700 --listen "$1" \
    --beat 200ms --lease 10s "$trainer" --step-ms 5 --say "$say"
}

joins() { # N
  join_host "s$1" "ip netns exec net$1" "$net.1.1:7700,$net.2.1:7700"
}

# in any order: two secondaries come before the main node, two after it
joins 1
joins 2
await join-s1.log 'tried again until'
lead $net.1.1
joins 3
joins 4
await_round 4
at=1 # the address of the driver
spent=()
for ((turn = 1; turn <= turns; turn++)); do
  a=$(((turn - 1) % 4 + 1))
  b=$((turn % 4 + 1))
  join_leave "s$a"
  join_leave "s$b"
  await_round 2
  join_left "s$a"
  join_left "s$b"
  joins "$a"
  await_round 3
  before=$(workers)
  kill_driver
  began=$EPOCHREALTIME
  at=$((3 - at))
  lead "$net.$at.1"
  for n in 1 2 3 4; do
    [ "$n" = "$b" ] ||
      await_after "$err" 'is taken over' "$turn" "s$n: (the|an) agent of this host (is back|says hello) with 1 workers"
  done
  spent+=($(((${EPOCHREALTIME/[.,]/} - ${began/[.,]/}) / 1000)))
  [ "$(workers)" = "$before" ] || die "turn $turn: workers were started anew"
  joins "$b"
  await_round 4
done
if grep -q 'is revoked' "$err"; then die "a round was revoked: $(grep 'is revoked' "$err")"; fi
ask stop || die "stop: exit code $?"
await_driver
for n in 1 2 3 4; do join_left "s$n"; done
nothing_left
mapfile -t spent < <(printf '%s\n' "${spent[@]}" | sort -n)
say_line "$turns turns: no round was revoked; from the start of a driver on the other address until its agents" \
  "are back with all workers: median ${spent[turns / 2]} ms, most ${spent[turns - 1]} ms"
