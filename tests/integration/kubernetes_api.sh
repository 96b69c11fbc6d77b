#!/usr/bin/env bash
# The manifests of deploy/kubernetes on a real API server, with its controllers and its scheduler: they make the pods, and the
# stand-in of a kubelet (tests/shell/kubelet.sh) runs them. A pod is deleted, agents are evicted as far as the disruption
# budget lets them, the driver is evicted, hosts come and go with the scale; the Job is complete when the training ends.
#
#     kubernetes_api.sh ELASTIC TRAINER
manifests=$(realpath "$(dirname "$0")/../../deploy/kubernetes/base")
. "$(dirname "$0")/../shell/lib.sh"
. "$(dirname "$0")/../shell/networks.sh"
. "$(dirname "$0")/../shell/pods.sh"
. "$(dirname "$0")/../shell/cluster.sh"
. "$(dirname "$0")/../shell/kubelet.sh"
networks_alone "$@"
test_begin "$@"
pods_begin "$manifests"
pod_settings=(HVD_BEAT=200ms HVD_LEASE=5s HVD_BLACKLIST_COOLDOWN_RANGE='0 0')
steps=4000
apps=/apis/apps/v1/namespaces/default
core=/api/v1/namespaces/default

# Debian has the sources of Kubernetes 1.20, and the manifests need a newer one in two places:
#   policy/v1 has the name policy/v1beta1 in 1.20, with the same fields
#   a Job has no podFailurePolicy in 1.20, so this test says nothing about it
# All else is applied as it is.
for_1_20() {
  sed -e 's|^apiVersion: policy/v1$|apiVersion: policy/v1beta1|' -e '/^  podFailurePolicy:/,/^  template:/{/^  template:/!d}'
}

# As deploy/kubernetes.md says: a copy of the folder, with the words of the training program in driver.yaml.
rendered() {
  cp -r "$manifests" base
  kube kustomize base >base.yaml || die 'kubectl cannot render the kustomization'
  diff <(python3 "$pods_tool" render base | in_order) <(in_order <base.yaml) || die 'kubectl renders other objects than pods.py'
  awk -v words="--steps=$steps --step-ms=5 --say=$say --made=$folder/seen/made --slow-until=$folder/seen/go" '
    { print }
    /- \/opt\/train\/train$/ { sub(/- .*/, "- "); for (i = 1; i <= split(words, word, " "); i++) print $0 word[i] }
  ' "$manifests/driver.yaml" >base/driver.yaml
  kube kustomize base | for_1_20
}
in_order() {
  python3 -c 'import json, sys, yaml
print("\n".join(sorted(json.dumps(thing, sort_keys=True) for thing in yaml.safe_load_all(sys.stdin))))'
}

pod_runs() { [ "$(field "$core/pods" ".items[] | select(.metadata.name == \"$1\" and .metadata.uid != \"${2:-}\" and
  .metadata.deletionTimestamp == null) | .status.conditions[]? | select(.type == \"Ready\") | .status")" = True ]; }
node_of() { field "$core/pods/$1" .spec.nodeName; }
uid_of() { field "$core/pods/$1" .metadata.uid; }
drivers() { field "$core/pods?labelSelector=app.kubernetes.io/component=driver" \
  '.items[] | select(.metadata.deletionTimestamp == null and .status.phase != "Failed") | .metadata.name'; }
driver_is_there() {
  driver_pod=$(drivers)
  [ -n "$driver_pod" ] && [ "$driver_pod" != "${1:-}" ] && [ -n "${kubelet_uid[$driver_pod]:-}" ]
}
evict() { # POD: in $status
  api POST "$core/pods/$1/eviction" "{\"apiVersion\": \"policy/v1beta1\", \"kind\": \"Eviction\", \"metadata\": {\"name\": \"$1\"}}"
}
allowed() { [ "$(field /apis/policy/v1beta1/namespaces/default/poddisruptionbudgets/train-agent .status.disruptionsAllowed)" = "$1" ]; }
addresses() { # SERVICE: those of its EndpointSlices
  field "/apis/discovery.k8s.io/v1beta1/namespaces/default/endpointslices?labelSelector=kubernetes.io/service-name=$1" \
    '[.items[].endpoints[]?.addresses[]] | sort | join(" ")'
}
has_addresses() { [ "$(addresses "$1")" = "$2" ]; }
revoked() { cat train-driver-*.log | grep -c 'is revoked'; }

cluster_begin
say_line "the cluster is $(kube version -o json 2>/dev/null | jq -r .serverVersion.gitVersion), after $SECONDS s"
kubelet_node n1 '[]'
kubelet_node n2 '[{"key": "cloud.google.com/gke-spot", "value": "true", "effect": "NoSchedule"}]'
kubelet_node n3 '[{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}]'
# the disk of a cloud
api_done POST /api/v1/persistentvolumes "{\"apiVersion\": \"v1\", \"kind\": \"PersistentVolume\", \"metadata\": {\"name\": \"disk\"},
  \"spec\": {\"capacity\": {\"storage\": \"1Gi\"}, \"accessModes\": [\"ReadWriteOnce\"], \"hostPath\": {\"path\": \"$folder/claims\"}}}"
openssl rand -hex 32 | kube create secret generic train-token --from-file=token=/dev/stdin >apply.out 2>&1 ||
  die "the secret cannot be made: $(cat apply.out)"
rendered >all.yaml
kube apply -f all.yaml >>apply.out 2>&1 || die "the API server refuses the manifests: $(cat apply.out)"

# Agents join before the probe of the driver has passed: their Service publishes its address at once.
agents_run() { pod_runs train-agent-0 && pod_runs train-agent-1; }
kubelet_probes=no
kubelet_until 'two agents' agents_run
kubelet_until 'the driver' driver_is_there
kubelet_until 'the address of the driver' grep -q train-driver hosts
await_round 2
driver=$driver_pod
if pod_runs "$driver"; then die 'the driver is Ready before its probe has passed'; fi
kubelet_probes=yes
kubelet_until 'the driver is Ready' pod_runs "$driver"
say_line "agents and driver are Ready, after $SECONDS s"

# where the scheduler has put them, and what the controllers have made of them
[ "$(node_of "$driver")" = n1 ] || die 'the driver is on a node with a taint that it does not tolerate'
[ "$(field "$core/persistentvolumeclaims/train-driver" '.status.phase + .spec.volumeName')" = Bounddisk ] || die 'the volume is not bound'
kubelet_until 'the addresses of agents' has_addresses train-agent "$(field "$core/pods?labelSelector=app.kubernetes.io/component=agent" \
  '[.items[].status.podIP] | sort | join(" ")')"
kubelet_until 'the address of the driver' has_addresses train-driver "$(field "$core/pods/$driver" .status.podIP)"
for service in train-agent train-driver; do
  [ "$(field "$core/endpoints/$service" '[.subsets[].addresses[].ip] | sort | join(" ")')" = "$(addresses $service)" ] ||
    die "Endpoints and EndpointSlices of $service differ"
done

# no pod can ask the API server: none has a token, and their service account may read nothing
[ "$(field "$core/pods" '[.items[].spec | .volumes[], (.containers[].volumeMounts[]) | .name | select(test("token-[a-z0-9]{5}$"))] |
  length')" = 0 ] || die 'a pod has a token for the API server'
for path in pods secrets/train-token persistentvolumeclaims; do
  as=system:serviceaccount:default:default api GET "$core/$path"
  [ "$status" = 403 ] || die "the service account of the pods may read $path: $status"
done
api GET "$core/pods/$driver"
[ "$status" = 200 ] || die "an administrator may not read a pod: $status"

# kubectl delete pod: the StatefulSet makes another one of this name, which joins
uid=$(uid_of train-agent-1)
kube delete pod train-agent-1 --wait=false >>apply.out 2>&1 || die "kubectl delete: $(tail -n 1 apply.out)"
kubelet_until 'another train-agent-1' pod_runs train-agent-1 "$uid"
await_round 1
await_round 2
say_line "a pod was deleted, and another one has joined, after $SECONDS s"

# evictions: one agent at a time, and the next one when the first is Ready again
kubelet_until 'the budget allows one eviction' allowed 1
first=$(uid_of train-agent-0) second=$(uid_of train-agent-1)
evict train-agent-0
[ "$status" = 201 ] || die "the first eviction is refused: $status $(cat cluster/answer)"
evict train-agent-1
[ "$status" = 429 ] || die "the second eviction is not refused: $status $(cat cluster/answer)"
said=$(jq -r .message cluster/answer)
kubelet_until 'another train-agent-0' pod_runs train-agent-0 "$first"
[ "$(uid_of train-agent-1)" = "$second" ] || die 'an eviction that was refused has ended a pod'
await_round 1
await_round 2
grep -q 'its workers have 50 s to leave' train-agent-0.log || die "the grace is not that of the manifest: $(cat train-agent-0.log)"

# kubectl drain: it evicts the agents of a node, one after the other if there are two
node=$(node_of train-agent-1)
agents_there=$(field "$core/pods?labelSelector=app.kubernetes.io/component=agent&fieldSelector=spec.nodeName=$node" '.items | length')
kube drain "$node" --pod-selector app.kubernetes.io/component=agent --delete-emptydir-data >drain.out 2>&1 &
drain=$!
drain_is_done() { ! is_alive $drain; }
kubelet_until 'the drain is done' drain_is_done
wait $drain || die "kubectl drain: $(cat drain.out)"
kubelet_until 'another train-agent-1' pod_runs train-agent-1 "$second"
kubelet_until 'two agents' agents_run
for ((i = 0; i < agents_there; i++)); do
  await_round 1
  await_round 2
done
kube uncordon "$node" >>apply.out 2>&1 || die "kubectl uncordon: $(tail -n 1 apply.out)"
say_line "evictions: 201, then 429 ($said), then a drain of $node with $agents_there agents, after $SECONDS s"

# The driver is evicted: its Job makes another pod, with another address and the same volume, and no worker is started anew.
# A Job of this version makes that pod while the first is still ending, and then its driver has to wait.
waits() { [ "$(cat "/proc/$(pgrep -P "${pod_inner[$driver_pod]}")/comm")" = flock ]; }
before=$(workers)
kubelet_late[$driver]=yes
evict "$driver"
[ "$status" = 201 ] || die "the eviction of the driver is refused: $status $(cat cluster/answer)"
kubelet_until 'another driver' driver_is_there "$driver"
await_true 'the second driver waits for the first' waits
kubelet_late[$driver]=''
kubelet_until 'the first driver has ended' grep -q "^$driver " ended
kubelet_until 'that driver is Ready' pod_runs "$driver_pod"
[ "$(grep '^train-driver' ended)" = "$driver 137" ] || die "the driver has ended otherwise: $(cat ended)"
driver=$driver_pod
kubelet_until 'the address of that driver' has_addresses train-driver "$(field "$core/pods/$driver" .status.podIP)"
await "$driver.log" '(the|an) agent of this host (is back|says hello) with 1 workers' 2
[ "$(workers)" = "$before" ] || die 'workers were started anew, although only the driver was evicted'
say_line "the driver was evicted, and $driver drives, after $SECONDS s"

# the scale: a host comes, and leaves
kube scale statefulset train-agent --replicas 3 >>apply.out 2>&1 || die "kubectl scale: $(tail -n 1 apply.out)"
kubelet_until 'a third agent' pod_runs train-agent-2
await_round 3
kube scale statefulset train-agent --replicas 2 >>apply.out 2>&1 || die "kubectl scale: $(tail -n 1 apply.out)"
kubelet_until 'the third agent has left' grep -q '^train-agent-2 0$' ended
await_round 2
[ "$(revoked)" = 0 ] || die "a round was revoked: $(grep 'is revoked' train-driver-*.log)"

# the node of an agent is lost: its pod is given up by its tolerations, and another one comes when the node is deleted
victim=train-agent-0
[ "$(node_of $victim)" != n1 ] || victim=train-agent-1
node=$(node_of $victim) uid=$(uid_of $victim)
[ "$node" != n1 ] || die 'both agents are on one node, although there are three'
kubelet_falls_silent "$node"
await_round 1
given_up() { [ "$(field "$core/pods/$victim" .metadata.deletionTimestamp)" != null ]; }
kubelet_until "$victim is given up" given_up
[ "$(uid_of $victim)" = "$uid" ] || die "another $victim is there before the node is deleted"
kube delete node "$node" >>apply.out 2>&1 || die "kubectl delete: $(tail -n 1 apply.out)"
kubelet_until "another $victim" pod_runs $victim "$uid"
await_round 2
say_line "the node of $victim was lost, and another one has joined, after $SECONDS s"
[ ! -e restarted ] || die "containers have ended by themselves: $(cat restarted)"

# the training ends: the Job is complete, and the agents begin anew, until they are scaled away
begun_anew() { [ "${kubelet_restarts[train-agent-0]}" -ge 1 ] && [ "${kubelet_restarts[train-agent-1]}" -ge 1 ]; }
job_is_complete() { [ "$(field /apis/batch/v1/namespaces/default/jobs/train-driver \
  '.status.conditions[]? | select(.status == "True") | .type')" = Complete ]; }
pods_are_gone() { [ "$(field "$core/pods" '.items | length')" = 0 ]; }
objects_are_gone() { [ "$(field "$core/persistentvolumeclaims" '.items | length')$(field "$apps/statefulsets" '.items | length')" = 00 ]; }
touch seen/go
kubelet_until 'the Job is complete' job_is_complete
[ "$(field /apis/batch/v1/namespaces/default/jobs/train-driver .status.succeeded)" = 1 ] || die 'not one pod of the Job has succeeded'
kubelet_until 'the agents begin anew' begun_anew
kube scale statefulset train-agent --replicas 0 >>apply.out 2>&1 || die "kubectl scale: $(tail -n 1 apply.out)"
kube delete -f all.yaml --wait=false >>apply.out 2>&1 || die "kubectl delete: $(tail -n 1 apply.out)"
kubelet_until 'no pod is left' pods_are_gone
kubelet_until 'no volume is left' objects_are_gone
if grep -E '^train-agent-.* ([1-9].*)$' ended; then die 'an agent has not ended in order, see above'; fi

lost=$(awk '{ seen[$3] } END { for (i = 1; i <= last; i++) if (!(i in seen)) print i }' last=$steps seen/made)
[ -z "$lost" ] || die "steps were never made: $lost"
cluster_end
nothing_left
say_line "a training of $steps steps on a real API server: a pod deleted, an eviction and one refused, a node drained, the driver" \
  "evicted, a host more and less, a node lost; all steps were made, and the Job is complete, after $SECONDS s"
