#!/usr/bin/env bash
# Agents on other machines, by ssh: two network namespaces, in each a real sshd. The same command as
# in first_run.sh, then the ways in which ssh fails.
#
#     two_networks.sh ELASTIC TRAINER
. "$(dirname "$0")/../shell/lib.sh"
. "$(dirname "$0")/../shell/networks.sh"
networks_begin "$@"

printf '%s.1.2:2\n%s.2.2:2\n' $net $net >hosts.now
printf '#!/bin/sh\ncat %s/hosts.now\n' "$folder" >hosts.sh
chmod +x hosts.sh
# shellcheck disable=SC2016 # the worker's shell is to see it
over -np 4 --min-np 2 --host-discovery-script ./hosts.sh sh -c 'echo $HVD_RANK; sleep 2'
ended 0
for rank in 0 1; do
  grep -qxF "[$rank $net.1.2:$rank] $rank" "$out" || die "rank $rank did not run on $net.1.2"
  grep -qxF "[$((rank + 2)) $net.2.2:$rank] $((rank + 2))" "$out" ||
    die "rank $((rank + 2)) did not run on $net.2.2"
done

# the key of the job is on no command line: neither of ssh nor of the agent; a lost network is a
# lost host, and it comes back
new_job
over -np 4 --min-np 2 --host-discovery-script ./hosts.sh --beat 200ms --lease 15s \
  --agent-timeout 20s "$trainer" --say "$say"
await_round 4
key=$(sqlite3 "$state/job.db" .dump | grep -oE '[0-9a-fA-F]{64}' | sort -u)
[ -n "$key" ] || die "no key is found in job.db"
for pid in $(marked); do
  while read -r word; do
    [ -z "$word" ] || ! tr '\0' ' ' <"/proc/$pid/cmdline" | grep -qi "$word" ||
      die "the key is on the command line of $(show_process "$pid")"
  done <<<"$key"
done
ip link set veth2 down
await_round 2
ip link set veth2 up
await_round 4
ask stop || die 'stop'
ended 143

# wrong CAUSE TEXT HOSTS: no worker trains there, the event says what ssh says, the job goes on elsewhere
wrong() {
  local cause=$1 text=$2 host=$3
  shift 3
  say_line "$cause"
  new_job
  over --blacklist-forever "$@" -np 2 --min-np 1 --max-np 3 -H "$net.1.2:2,$host:1" "$trainer" --say "$say"
  await_round 2
  await "$err" "$text"
  ask hosts | grep -F "$host" | grep -qE "$text" || say_line "hosts: $(ask hosts)"
  ask stop || die 'stop'
  ended 143
}
wrong 'an unknown host' 'name resolution|not known' no-such-host.invalid
wrong 'nobody at that address' 'No route|refused|timed out|unreachable' $net.2.9 --agent-timeout 20s
cp known_hosts known_hosts.right
ssh-keygen -q -t ed25519 -N '' -f other_key
sed "/$net\.2/d" known_hosts.right >known_hosts
echo "[$net.2.2]:2222 $(cut -d ' ' -f 1,2 other_key.pub)" >>known_hosts
wrong 'a wrong host key' 'erification failed' $net.2.2
sed "/$net\.2/d" known_hosts.right >known_hosts
wrong 'an unknown host key' 'erification failed' $net.2.2
cp known_hosts.right known_hosts
ip netns exec net2 ip addr add $net.2.3/24 dev peer2
wrong 'a refused port' 'refused' $net.2.3
say_line 'two networks: all of it'
