#!/usr/bin/env bash
# A host that joins from behind NAT: a namespace whose router translates addresses. Other hosts cannot connect to its
# workers, so it is refused at once, in one line, and the job is not disturbed. If the router forwards an address to it,
# and its operator names this address, it is a host like the others.
#
#     join_nat.sh ELASTIC TRAINER
. "$(dirname "$0")/../shell/lib.sh"
. "$(dirname "$0")/../shell/networks.sh"
. "$(dirname "$0")/../shell/join.sh"
. "$(dirname "$0")/../shell/train.sh"
networks_alone "$@"
PATH=$PATH:/usr/sbin
command -v nft >/dev/null || skip 'there is no nft (package nftables)'
test_begin "$@"
join_token token
made=$folder/made
: >"$made"
network_join 1
network_join 2
# net2 is the router of the namespace inner, which has a private address
inner=192.168.5
ip netns add inner
ip -n net2 link add inside type veth peer name outside netns inner
ip -n net2 addr add $inner.1/24 dev inside
ip -n net2 link set inside up
ip -n inner addr add $inner.2/24 dev outside
ip -n inner link set outside up
ip -n inner link set lo up
ip -n inner route add default via $inner.1
ip netns exec net2 sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward' || skip 'nothing can be forwarded here'

translate() { # RULES
  ip netns exec net2 nft -f - <<END
flush ruleset
table ip nat {
  chain pre { type nat hook prerouting priority dstnat; $1 }
  chain post { type nat hook postrouting priority srcnat; oifname "peer2" snat to $net.2.2; }
}
END
}
translate '' 2>nft.err || skip "this kernel translates no addresses: $(head -n 1 nft.err)"

behind() { join_host s2 'ip netns exec inner' $net.1.1:7700 "$@"; }

start -np 1 --max-np 2 --discovery join --token-file token --port 7700 --listen $net.1.1 --beat 200ms --lease 10s \
  --prepare-timeout 5s "$trainer" --step-ms 5 --say "$say" --made "$made"
join_host s1 'ip netns exec net1' $net.1.1:7700
await_round 1
behind
nat="its address is $inner.2, but its connection comes from $net.2.2:[0-9]*: the host is behind NAT, and the other hosts"
refused s2 3 "the driver at $net.1.1:7700 does not let this host join: $nat cannot connect to its workers; give hvd-agent --address"
[ "$(grep -c "s2: this host may not join: $nat" "$err")" = 1 ] || die 'the driver does not say once that s2 is behind NAT'
behind --address "$inner.2x" # no address
join_left s2 2
grep -q 'address: .*not a numeric address' join-s2.log || die "no address: $(cat join-s2.log)"

# the router forwards all ports of an address to it
translate "iifname \"peer2\" ip daddr $net.2.2 dnat to $inner.2;"
behind --address $net.2.2
await_round 2
await_steps 100
join_leave s2
await_round 1
join_left s2
if grep -q 'is revoked' "$err"; then die "a round was revoked: $(grep 'is revoked' "$err")"; fi
ask stop || die 'stop'
await_driver
join_left s1
nothing_left
no_step_lost
say_line "behind NAT: $(grep -E "$nat" join-s2.log)"
say_line 'with a forwarded address, which --address names, it trained'
