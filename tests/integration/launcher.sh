#!/usr/bin/env bash
# Agents that another command than ssh starts (--launcher): a stand-in for rsh runs them in two network namespaces. An agent
# that is killed comes back by it. Then the command fails, hangs, prints much, and is gone: the job goes on without that host,
# and says why, until the command works again. A job without its driver ends also when the command is gone.
#
#     launcher.sh ELASTIC TRAINER
. "$(dirname "$0")/../shell/lib.sh"
. "$(dirname "$0")/../shell/networks.sh"
networks_alone "$@"
test_begin "$@"
for n in 1 2; do
  network_join $n
  mkdir -p net$n/state
done

# rsh [-K] HOST COMMAND...: as rsh does, it puts the words of the command together for a shell.
cat >rsh <<END
#!/bin/sh
[ "\$1" != -K ] || shift
host=\$1
shift
echo "\$host \$*" >>$folder/called
n=\${host#$net.}
n=\${n%.2}
[ ! -e $folder/fault.\$n ] || . $folder/fault.\$n
exec env XDG_STATE_HOME=$folder/net\$n/state ip netns exec net\$n sh -c "\$*"
END
chmod +x rsh

start --launcher "$folder/rsh -K" -np 4 --min-np 2 -H "$net.1.2:2,$net.2.2:2" "$trainer" --say "$say"
await_round 4
find_agent "$net.2.2"
kill -KILL "$agent"
await_round 4
[ "$(grep -c "^$net\.2\.2 exec sh -c .*hvd-agent" called)" -ge 2 ] || die "the agent came back by other means: $(cat called)"
if grep -qE '[0-9a-f]{64}' called; then die "a key is on the command line: $(cat called)"; fi
ask stop || die "stop: exit code $?"
ended 143

# fault SCRIPT REGEX: the command does that for the second host, and the log says so.
fault() {
  say_line "$1"
  echo "$1" >fault.new
  mv fault.new fault.2
  await "$err" "$2"
}
new_job
echo 'echo "the pod is away" >&2; exit 3' >fault.2
start --launcher "$folder/rsh" --agent-timeout 10s -np 2 --min-np 1 --max-np 3 -H "$net.1.2:2,$net.2.2:1" "$trainer" --say "$say"
await_round 2
await "$err" "$folder/rsh to $net.2.2: the pod is away \(exit code 3\); run the command of --launcher by hand"
fault 'yes | head -c 3000000 >&2; echo full >&2; exit 9' "rsh to $net.2.2: full \(exit code 9\)"
fault 'echo "hvd-agent: not today" >&2; exit 1' "hvd-agent on $net.2.2: hvd-agent: not today \(exit code 1\)"
fault 'echo waits >&2; exec tail -f /dev/null' "rsh to $net.2.2: did not end within 9s, and was killed \(last line: waits\)"
mv rsh rsh.away
await "$err" "rsh to $net.2.2: $folder/rsh: no such program; check the path"
rm fault.2
mv rsh.away rsh
await_round 3

# The job can be ended without its driver and without the command.
kill_driver
rm rsh
ask stop || die "stop without the command: exit code $?"
nothing_left
remote_left
say_line 'agents came by another command than ssh; while it failed the job went on, and said why'
