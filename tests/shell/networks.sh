# shellcheck shell=bash
# shellcheck disable=SC2154 # what lib.sh sets
# Other machines for a test: network namespaces, in each a real sshd. Sourced after lib.sh:
#
#     networks_begin "$@"
#     over -np 4 -H 10.77.1.2:2,10.77.2.2:2 -- "$trainer"
#     ended 143
#
# Network N: this side is $net.N.1, the other machine $net.N.2; they reach each other through this side.
# A script that sets six=fd77 before networks_begin has IPv6 addresses too: $six:N::1 and $six:N::2.
#
# A script that runs one program between networks, without sshd, needs no lib.sh: networks_alone "$@", and network_join N.
net=10.77

[ "$(type -t skip)" ] || skip() {
  echo "skipped: $*"
  exit 77
}

# Begins this script again in namespaces of its own, where it is the router of networks to come, or says why there can be
# none. All that is made here is gone with these namespaces.
networks_alone() {
  command -v ip >/dev/null || skip 'there is no ip (package iproute2)'
  [ "$(id -u)" = 0 ] || skip 'only root can make network namespaces'
  if [ -z "${BODY_NETWORKS:-}" ]; then
    unshare -mn true 2>/dev/null || skip 'no namespaces can be made here'
    BODY_NETWORKS=1 exec unshare -mn --propagation private "$(realpath "$0")" "$@"
  fi
  mount -t tmpfs tmpfs /run || skip 'nothing can be mounted'
  mkdir -p /run/netns
  ip link set lo up
  # /proc/sys is that of the network in which it is opened
  { echo 1 >/proc/sys/net/ipv4/ip_forward; } 2>/dev/null || skip 'nothing can be forwarded here'
}

# network_join N: makes the namespace netN and joins it to this one.
network_join() {
  ip netns add "net$1"
  ip link add "veth$1" type veth peer name "peer$1"
  ip link set "peer$1" netns "net$1"
  ip addr add "$net.$1.1/24" dev "veth$1"
  ip link set "veth$1" up
  ip -n "net$1" addr add "$net.$1.2/24" dev "peer$1"
  ip -n "net$1" link set "peer$1" up
  ip -n "net$1" link set lo up
  ip -n "net$1" route add default via "$net.$1.1"
}

# Two networks, or the reason why there can be none.
networks_begin() {
  sshd=$(PATH=$PATH:/usr/sbin command -v sshd) || skip 'there is no sshd (package openssh-server)'
  command -v ssh >/dev/null || skip 'there is no ssh (package openssh-client)'
  networks_alone "$@"
  test_begin "$@"
  mkdir -p /run/sshd
  [ -z "${six:-}" ] || { echo 1 >/proc/sys/net/ipv6/conf/all/forwarding; } 2>/dev/null ||
    skip 'IPv6 is not there, or cannot be forwarded here'
  ssh-keygen -q -t ed25519 -N '' -f user_key
  network 1
  network 2
  cat >ssh_config <<END
Host *
  UserKnownHostsFile $folder/known_hosts
  StrictHostKeyChecking yes
  User root
END
}

network() {
  local name=net$1
  mkdir "$name" "$name/state"
  network_join "$1"
  if [ -n "${six:-}" ]; then
    ip addr add "$six:$1::1/64" dev "veth$1" nodad || skip 'a network cannot have IPv6 addresses here'
    ip -n "$name" addr add "$six:$1::2/64" dev "peer$1" nodad
    ip -n "$name" route add default via "$six:$1::1"
  fi
  ssh-keygen -q -t ed25519 -N '' -f "$name/host_key"
  cat >"$name/sshd_config" <<END
ListenAddress $net.$1.2
${six:+ListenAddress $six:$1::2}
Port 2222
HostKey $folder/$name/host_key
PidFile none
AuthorizedKeysFile $folder/user_key.pub
PermitRootLogin yes
StrictModes no
UsePAM no
PasswordAuthentication no
# SHLVL: bash, started by sshd, reads no .bashrc, which may take its time
SetEnv XDG_STATE_HOME=$folder/$name/state BODY_TEST=$folder SHLVL=1
END
  BODY_TEST=$folder ip netns exec "$name" "$sshd" -f "$folder/$name/sshd_config" -D -e \
    >"$name/sshd.log" 2>&1 </dev/null &
  helpers+=($!)
  await "$name/sshd.log" 'Server listening' "${six:+2}" # a line for each address
  echo "[$net.$1.2]:2222${six:+,[$six:$1::2]:2222} $(cut -d ' ' -f 1,2 "$name/host_key.pub")" >>known_hosts
}

# over WORDS...: a job on both.
over() {
  start -i "$folder/user_key" -p 2222 --ssh-args "-F $folder/ssh_config" \
    --agent-path "$(dirname "$elastic")/../agent/hvd-agent" "$@"
}

# Beside the sshds, which stay: they are ended here, and started by the next network.
remote_left() {
  local left='' place
  for place in "$folder"/net[0-9]; do
    no_sockets ip netns exec "${place##*/}"
    left+=$(find "$place/state" -type f ! -name '*.log')
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
