#!/usr/bin/env bash
# Agents on other machines, by ssh: two network namespaces, in each a real sshd. The same command as
# in first_run.sh, then the ways in which ssh fails.
#
#     two_networks.sh ELASTIC TRAINER
. "$(dirname "$0")/../body/lib.sh"

sshd=$(PATH=$PATH:/usr/sbin command -v sshd) || skip 'there is no sshd (package openssh-server)'
command -v ip >/dev/null || skip 'there is no ip (package iproute2)'
command -v ssh >/dev/null || skip 'there is no ssh (package openssh-client)'
[ "$(id -u)" = 0 ] || skip 'only root can make network namespaces'
if [ -z "${BODY_NETWORKS:-}" ]; then
  unshare -mn true 2>/dev/null || skip 'no namespaces can be made here'
  BODY_NETWORKS=1 exec unshare -mn --propagation private "$script" "$@"
fi
body_begin "$@"

mount -t tmpfs tmpfs /run || skip 'nothing can be mounted'
mkdir -p /run/netns /run/sshd
ip link set lo up
net=10.77

# network N: this side is $net.N.1, the other one $net.N.2, with an sshd
network() {
  local name=net$1
  mkdir "$name" "$name/state"
  ip netns add "$name"
  ip link add "veth$1" type veth peer name "peer$1"
  ip link set "peer$1" netns "$name"
  ip addr add "$net.$1.1/24" dev "veth$1"
  ip link set "veth$1" up
  ip -n "$name" addr add "$net.$1.2/24" dev "peer$1"
  ip -n "$name" link set "peer$1" up
  ip -n "$name" link set lo up
  ssh-keygen -q -t ed25519 -N '' -f "$name/host_key"
  cat >"$name/sshd_config" <<END
ListenAddress $net.$1.2
Port 2222
HostKey $folder/$name/host_key
PidFile none
AuthorizedKeysFile $folder/user_key.pub
PermitRootLogin yes
StrictModes no
UsePAM no
PasswordAuthentication no
SetEnv XDG_STATE_HOME=$folder/$name/state BODY_TEST=$folder
END
  BODY_TEST=$folder ip netns exec "$name" "$sshd" -f "$folder/$name/sshd_config" -D -e \
    >"$name/sshd.log" 2>&1 </dev/null &
  helpers+=($!)
  await "$name/sshd.log" 'Server listening'
  echo "[$net.$1.2]:2222 $(cut -d ' ' -f 1,2 "$name/host_key.pub")" >>known_hosts
}

ssh-keygen -q -t ed25519 -N '' -f user_key
network 1
network 2
cat >ssh_config <<END
Host *
  UserKnownHostsFile $folder/known_hosts
  StrictHostKeyChecking yes
  User root
END

# over WORDS...: a job on both.
over() {
  start -i "$folder/user_key" -p 2222 --ssh-args "-F $folder/ssh_config" \
    --agent-path "$(dirname "$elastic")/../agent/hvd-agent" "$@"
}

# Beside the sshds, which stay: they are ended here, and started by the next network.
remote_left() {
  local left=''
  for name in net1 net2; do
    left+=$(ip netns exec "$name" grep -F "$job" /proc/net/unix || true)
    left+=$(find "$folder/$name/state" -type f ! -name '*.log')
  done
  [ -z "$left" ] || die "left on the other side: $left"
}

ended() { # CODE
  local pid
  await_driver
  [ "$code" = "$1" ] || die "the driver's exit code is $code, not $1"
  for pid in $(marked "HVD_JOB=$job") $(agents); do
    await_end "$pid" || die "left on the other side: $pid"
  done
  remote_left
}

agents() {
  local pid
  for pid in $(marked); do
    if [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = hvd-agent ]; then echo "$pid"; fi
  done
}

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
over -np 4 --min-np 2 --host-discovery-script ./hosts.sh --beat 200ms --lease 2s \
  --agent-timeout 5s "$trainer" --say "$say"
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

# wrong CAUSE TEXT HOSTS: nobody trains there, the event says what ssh says, the job goes on elsewhere
wrong() {
  local cause=$1 text=$2 host=$3
  shift 3
  say_line "$cause"
  new_job
  over --blacklist-forever "$@" -np 2 --min-np 1 -H "$net.1.2:2,$host:1" "$trainer" --say "$say"
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
