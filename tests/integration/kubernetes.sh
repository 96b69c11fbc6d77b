#!/usr/bin/env bash
# The pods of deploy/kubernetes, run as a kubelet runs them, but without a cluster (tests/shell/pods.sh): agents come before
# the driver, one is evicted and comes back; the driver's pod is lost, is evicted, and comes back on another address with the
# same volume; an agent hangs, its probe says so, and its pod is replaced. No step is lost: the trainer checks each sum.
#
#     kubernetes.sh ELASTIC TRAINER
manifests=$(realpath "$(dirname "$0")/../../deploy/kubernetes/base")
. "$(dirname "$0")/../shell/lib.sh"
. "$(dirname "$0")/../shell/networks.sh"
. "$(dirname "$0")/../shell/pods.sh"
networks_alone "$@"
test_begin "$@"
pods_begin "$manifests"
for n in 1 2 3 4; do network_join $n; done
training=(--step-ms 5 --say "$say" --made "$folder/seen/made")
pod_settings=(HVD_BEAT=200ms HVD_LEASE=5s HVD_BLACKLIST_COOLDOWN_RANGE='0 0')

# probe POD REGEX: the liveness probe passes, and says that.
probe() {
  pod_probe "$1" || die "the probe of $1 fails: $(cat probe.out)"
  grep -qE "$2" probe.out || die "the probe of $1 does not say '$2': $(cat probe.out)"
}
revoked() { cat driver-?.log | grep -c 'is revoked'; }

# agents come first, and are well while they wait
pod_start train-agent train-agent-0 2
pod_start train-agent train-agent-1 3
await train-agent-0.log 'tried again until'
probe train-agent-0 'host train-agent-0 waits for a driver, within --join-timeout; no agent runs: train-driver'
pod_start train-driver driver-1 1
await driver-1.log 'the driver listens'
pod_address train-driver 1
await_round 2
probe train-agent-0 'host train-agent-0 is connected to the driver at .*:7000; its agent runs'
probe train-agent-0 'the agent of job train on host train-agent-0 is connected to its driver'
probe driver-1 ok
[ "$(stat -c %a claims/train-driver/job)" = 2700 ] || die "the folder of the driver has mode $(stat -c %a claims/train-driver/job)"

# no pod writes to its root; a program of the user may write to /tmp of an agent
for pod in train-agent-0 driver-1; do
  if pod_exec $pod touch /file 2>touch.out || ! grep -q 'Read-only' touch.out; then die "$pod can write to /: $(cat touch.out)"; fi
done
pod_exec train-agent-0 touch /tmp/file || die 'a program cannot write to /tmp'

# the first process of a pod reaps a process that has lost its parent there
for pod in train-agent-0 driver-1; do
  orphan=$(pod_exec $pod sh -c 'sh -c "echo \$\$" & exec true')
  [ -n "$orphan" ] || die "no orphan is left in $pod"
  first=${pod_inner[$pod]}
  await_true "the orphan $orphan in $pod is reaped" [ ! -e "/proc/$first/root/proc/$orphan" ]
done

# an eviction: the workers leave in order, and the same pod comes back
pod_stop train-agent-1 0
await_round 1
[ "$(revoked)" = 0 ] || die "a round was revoked: $(grep 'is revoked' driver-1.log)"
grep -q 'its workers have 50 s to leave' train-agent-1.log || die "the grace is not that of the manifest: $(cat train-agent-1.log)"
pod_start train-agent train-agent-1 3
await_round 2

# the node of the driver is lost, then the next driver is evicted: each time another one comes up elsewhere
before=$(workers)
pod_kill driver-1
pod_start train-driver driver-2 4
pod_address train-driver 4
await driver-2.log '(the|an) agent of this host (is back|says hello) with 1 workers' 2
probe driver-2 ok
pod_stop driver-2 137
pod_start train-driver driver-3 1
pod_address train-driver 1
await driver-3.log '(the|an) agent of this host (is back|says hello) with 1 workers' 2
[ "$(workers)" = "$before" ] || die 'workers were started anew, although only drivers were lost'
[ "$(revoked)" = 0 ] || die "a round was revoked: $(grep 'is revoked' driver-?.log)"

# an agent hangs, and the process that has joined hangs: the probe fails, and the kubelet kills the container
for victim in agent join; do
  agent=${pod_inner[train-agent-1]}
  [ $victim = join ] || find_agent train-agent-1
  kill -STOP "$agent"
  if pod_probe train-agent-1; then die "the probe does not find the $victim process that hangs: $(cat probe.out)"; fi
  grep -q 'does not answer; if it is stopped or hangs, kill it' probe.out || die "the probe says: $(cat probe.out)"
  pod_kill train-agent-1
  await_round 1
  pod_start train-agent train-agent-1 3
  await_round 2
  probe train-agent-1 'is connected to its driver'
done

# the operator ends the job; the Job then fails for good, and the agents end with 0 to wait for the next driver
steps=$(awk '$3 > last { last = $3 } END { print last }' seen/made)
pod_exec driver-3 hvd-elastic stop --state-dir /job >stop.out 2>&1 || die "stop: $(cat stop.out)"
pod_ended driver-3 143
for pod in train-agent-0 train-agent-1; do pod_ended $pod 0; done
lost=$(awk '{ seen[$3] } END { for (i = 1; i <= last; i++) if (!(i in seen)) print i }' last="$steps" seen/made)
[ -z "$lost" ] || die "steps were never made: $lost"
nothing_left
say_line "a training of $steps steps in pods: agents before the driver, an eviction of an agent, a lost node and an eviction of" \
  "the driver, two hangs; all steps were made, and $(revoked) rounds were revoked, all by the hangs"
