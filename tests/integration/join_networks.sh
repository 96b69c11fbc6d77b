#!/usr/bin/env bash
# Hosts that join by themselves: four network namespaces, in each `hvd-agent --join` with a token, and no
# sshd. Turn after turn two of them leave, one returns, the driver is killed and comes back on
# another of four addresses, and the second host returns. Two of the hosts know these addresses, the other two a name,
# which follows the driver. In each turn hosts come with tokens that are wrong, expired, used up, revoked or for another
# host: one line each. No round is ever revoked, and no step is lost.
#
#     join_networks.sh ELASTIC TRAINER TURNS
. "$(dirname "$0")/../shell/lib.sh"
. "$(dirname "$0")/../shell/networks.sh"
. "$(dirname "$0")/../shell/join.sh"
. "$(dirname "$0")/../shell/train.sh"
networks_alone "$@"
test_begin "$@"
turns=$3
for n in 1 2 3 4; do network_join $n; done
join_token token
made=$folder/made
: >"$made"
: >names
mount --bind names /etc/hosts || skip 'no file can be mounted'

# lead N: the driver listens on the address of network N, and the name follows it.
lead() {
  echo "$net.$1.1 main.test" >names
  start -np 4 --min-np 2 --discovery join --token-file token --port 7700 --listen "$net.$1.1" \
    --beat 200ms --lease 10s "$trainer" --step-ms 5 --say "$say" --made "$made"
}

joins() { # N
  local places=main.test:7700
  [ $(($1 % 2)) = 0 ] || places=$net.1.1:7700,$net.2.1:7700,$net.3.1:7700,$net.4.1:7700
  join_host "s$1" "ip netns exec net$1" "$places"
}

kinds=(late used gone bound wrong)
declare -A says=(
  [late]='token [0-9a-f]{8} has expired' [used]='token [0-9a-f]{8} is used up' [gone]='token [0-9a-f]{8} is revoked'
  [bound]='token [0-9a-f]{8} is for host another alone' [wrong]='the token is wrong, or that driver is one of another job')

# One token of each kind that lets no host in.
make_tokens() {
  join_token wrong.token
  ask token create --lifetime 100ms >late.token || die 'token create --lifetime'
  ask token create --host another >bound.token || die 'token create --host'
  ask token create --uses 1 >used.token || die 'token create --uses'
  token_file=used.token join_host user 'ip netns exec net1' "$net.1.1:7700"
  await join-user.log 'has joined the job'
  join_leave user
  join_left user
  ask token create >gone.token || die 'token create'
  ask token revoke "$(ask token list | awk '$2 == "good" && $3 == "any" && $5 == "any" && $6 == "always" { print $1 }' | tail -n 1)" ||
    die 'token revoke'
}

# knock TURN: a host with each of these tokens
knock() {
  local kind
  for kind in "${kinds[@]}"; do
    rm -f "join-x$kind.log"
    token_file=$kind.token join_host "x$kind" "ip netns exec net$(($1 % 4 + 1))" "$net.$at.1:7700" --join-timeout 2s
  done
}

knocked() {
  local kind
  for kind in "${kinds[@]}"; do
    refused "x$kind" "$([ "$kind" = wrong ] && echo 1 || echo 3)" "${says[$kind]}.*"
    refusals=$((refusals + 1))
  done
}

# in any order: two secondaries come before the main node, two after it
at=1 # the network in which the driver listens
joins 1
joins 2
await join-s1.log 'tried again until'
lead $at
joins 3
joins 4
await_round 4
make_tokens
spent=()
refusals=0
for ((turn = 1; turn <= turns; turn++)); do
  a=$(((turn - 1) % 4 + 1))
  b=$((turn % 4 + 1))
  knock $turn
  join_leave "s$a"
  join_leave "s$b"
  await_round 2
  join_left "s$a"
  join_left "s$b"
  joins "$a"
  await_round 3
  knocked
  before=$(workers)
  kill_driver
  began=$EPOCHREALTIME
  at=$((at % 4 + 1))
  lead $at
  for n in 1 2 3 4; do
    [ "$n" = "$b" ] ||
      await_after "$err" 'is taken over' "$turn" "s$n: (the|an) agent of this host (is back|says hello) with 1 workers"
  done
  spent+=($(((${EPOCHREALTIME/[.,]/} - ${began/[.,]/}) / 1000)))
  [ "$(workers)" = "$before" ] || die "turn $turn: workers were started anew"
  joins "$b"
  await_round 4
done
if grep 'round [0-9]* is revoked' "$err" >revoked; then die "a round was revoked: $(cat revoked)"; fi
ask stop || die "stop: exit code $?"
await_driver
for n in 1 2 3 4; do join_left "s$n"; done
nothing_left
no_step_lost
# the pause of the members in each switch, in ms, as the driver says it
mapfile -t pauses < <(sed -nE 's/.*: all [0-9]+ train \(switch ([0-9.]+)(us|ms|s):.*/\1 \2/p' "$err" |
  awk '{ printf "%.1f\n", $1 * ($2 == "s" ? 1000 : $2 == "us" ? 0.001 : 1) }' | sort -n)
mapfile -t spent < <(printf '%s\n' "${spent[@]}" | sort -n)
say_line "$turns turns: no round was revoked, no step of $(awk '$3 > most { most = $3 } END { print most }' "$made") lost;" \
  "from the start of a driver on another address until its agents are back with all workers:" \
  "median ${spent[turns / 2]} ms, most ${spent[turns - 1]} ms; training stood in each of ${#pauses[@]} switches for" \
  "${pauses[${#pauses[@]} / 2]} ms (median), ${pauses[-1]} ms (most); $refusals refusals:"
for kind in "${kinds[@]}"; do say_line "  $kind: $(grep -E "${says[$kind]}" "join-x$kind.log")"; done
