#!/usr/bin/env bash
# A driver that takes a job over with --resume JOB alone, from another folder and another environment, runs the job's
# script for hosts as the first driver did: the variables of the job, and those of the login that is there now.
#
#     resume_script.sh ELASTIC TRAINER
. "$(dirname "$0")/../shell/lib.sh"
test_begin "$@"

cat >hosts.sh <<'END'
#!/bin/sh
echo "$CLUSTER ${SSH_AUTH_SOCK:-none} ${OTHER:-none}" >>seen
[ -n "$CLUSTER" ] && cat "hosts.$CLUSTER"
END
chmod +x hosts.sh
echo 127.0.0.1:2 >hosts.mine

export CLUSTER=mine SSH_AUTH_SOCK=first
start -np 2 --max-np 3 --host-discovery-script hosts.sh --discovery-interval 100ms "$trainer" --step-ms 5 --say "$say"
await_round 2
kill_driver
unset CLUSTER
mkdir -p elsewhere
(cd elsewhere && SSH_AUTH_SOCK=second OTHER=1 BODY_TEST=$folder exec "$elastic" --resume "$job" --state-dir "$state") \
  >>"$out" 2>>"$err" </dev/null &
driver=$!
await seen '^mine second none$'
echo 127.0.0.2:1 >>hosts.mine # the later driver finds a host by the script
await_round 3
! grep -vE '^mine (first|second) none$' seen || die 'the script ran with other variables'
ask stop || die "stop: exit code $?"
finish 143
say_line "the script ran $(wc -l <seen) times"
