#!/usr/bin/env bash
# Another user binds the names of agents' sockets before the agents do: the name that follows from job
# and host, and the name that an agent had, when that agent is killed. The harm: no agent starts there,
# and the host is blamed.
#
#     squat.sh ELASTIC TRAINER
. "$(dirname "$0")/../shell/lib.sh"
test_begin "$@"
command -v perl >/dev/null || skip 'no perl, which binds the names'
stranger=()
if [ "$(id -u)" = 0 ]; then
  stranger=(setpriv --reuid 12345 --regid 12345 --clear-groups)
else
  say_line 'the squatter is the same user, as only root can be another one'
fi

# squat NAME: holds the abstract name, and lets all clients wait, until the test ends.
squat() {
  # shellcheck disable=SC2016 # for perl
  "${stranger[@]}" perl -MSocket -e '$| = 1; socket(S, AF_UNIX, SOCK_STREAM, 0) or die;
    bind(S, pack_sockaddr_un("\0" . $ARGV[0])) or die "$!\n"; listen(S, 9); print "held\n"; sleep 600' \
    "${1#@}" >>"$folder/held" &
  helpers+=($!)
  squatted=$((squatted + 1))
  await "$folder/held" '^held$' "$squatted"
}
squatted=0
sockets() { grep -o "@hvd-agent/$job/.*" /proc/net/unix | sort -u; }

squat "@hvd-agent/$job/127.0.0.1"
squat "@hvd-agent/$job/127.0.0.1/"
start -np 2 -H 127.0.0.1:1,127.0.0.2:1 "$trainer" --say "$say"
await_round 2
name=$(sockets | grep '/127.0.0.1/.')
[ "${#name}" -gt 40 ] || die "the name '$name' can be foreseen"

# The name that is there for all to see is taken at the moment at which its agent is killed.
find_agent 127.0.0.1
kill -KILL "$agent"
await_end "$agent"
squat "$name"
await_round 2
again=$(sockets | grep '/127.0.0.1/.' | grep -vxF "$name")
[ -n "$again" ] || die 'the next agent has no name of its own'

for helper in "${helpers[@]}"; do kill "$helper"; done
for helper in "${helpers[@]}"; do await_end "$helper"; done
ask stop >>"$out" 2>>"$err"
finish 143
