# shellcheck shell=bash disable=SC2154 # what lib.sh, pods.sh and cluster.sh set
# The kubelets of all nodes of a cluster (cluster.sh), and its name server, as far as the pods of deploy/kubernetes need
# them. The containers are those of pods.sh; what is in them comes from the API server. Sourced after pods.sh:
#
#     kubelet_node n1 '[]'                       a node that is Ready, with these taints
#     kubelet_until WHAT COMMAND...              kubelets work until the command succeeds
#     kubelet_probes=no                          no pod with a readiness probe becomes Ready
#     kubelet_late[POD]=yes                      the pod is not told yet that it is deleted
#     kubelet_falls_silent n1                    the node is lost, with its pods
#
# Nothing works between two calls of kubelet_until: containers live on, and what the API server wants has to wait. Each pod
# has a network of its own. A name is in the hosts file of all pods, with the addresses that the endpoints of its headless
# Service have.
declare -A kubelet_uid=() kubelet_net=() kubelet_restarts=() kubelet_ready=() kubelet_deadline=() kubelet_over=()
declare -A kubelet_silent=() kubelet_late=()
kubelet_nets=0
kubelet_probes=yes
kubelet_pods=/api/v1/namespaces/default/pods

kubelet_node() { # NAME TAINTS
  local room='{"cpu": "4", "memory": "16Gi", "pods": "110"}'
  api_done POST /api/v1/nodes "{\"apiVersion\": \"v1\", \"kind\": \"Node\", \"spec\": {\"taints\": $2},
    \"metadata\": {\"name\": \"$1\", \"labels\": {\"kubernetes.io/hostname\": \"$1\"}}}"
  api_done PATCH "/api/v1/nodes/$1/status" "{\"status\": {\"capacity\": $room, \"allocatable\": $room,
    \"conditions\": [{\"type\": \"Ready\", \"status\": \"True\", \"reason\": \"KubeletReady\"}]}}"
}

# The network goes first: no process of the node can say a last word. After some time without a heartbeat the node controller
# would see the node as this function says it at once.
kubelet_falls_silent() { # NODE
  local pod
  for pod in $(field "$kubelet_pods?fieldSelector=spec.nodeName=$1" '.items[].metadata.name'); do
    ip link set "veth${kubelet_net[$pod]}" down
    pod_kill "$pod"
    kubelet_uid[$pod]=''
  done
  kubelet_silent[$1]=yes
  api_done PATCH "/api/v1/nodes/$1/status" '{"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}'
}

kubelet_until() { # WHAT COMMAND...
  await_true "$1" kubelet_works "${@:2}"
}

kubelet_works() {
  kubelet_turn
  "$@"
}

kubelet_turn() {
  local line lines
  api_done GET "$kubelet_pods"
  mapfile -t lines < <(jq -r '.items[] | select(.spec.nodeName) | [.metadata.name, .metadata.uid,
    .metadata.deletionTimestamp // "stays", .metadata.deletionGracePeriodSeconds // 0, .spec.nodeName] | @tsv' cluster/answer)
  for line in "${lines[@]}"; do
    # shellcheck disable=SC2086 # fields without blanks
    kubelet_pod $line
  done
  kubelet_names
}

# One look at a pod of the API server: it is begun, told to end, found ended, or probed.
kubelet_pod() { # POD UID DELETED GRACE NODE
  local pod=$1
  [ -z "${kubelet_silent[$5]:-}" ] || return 0
  if [ "${kubelet_uid[$pod]:-}" != "$2" ]; then
    [ -z "${kubelet_uid[$pod]:-}" ] || die "the API server has another pod $pod, and the first was not ended"
    if [ "$3" = stays ]; then kubelet_begin "$pod" "$2"; else kubelet_remove "$pod" "$2"; fi
  elif [ -n "${kubelet_over[$pod]:-}" ]; then
    if [ "$3" != stays ]; then kubelet_remove "$pod" "$2"; fi
  elif ! is_alive "${pod_outer[$pod]}"; then
    kubelet_ended "$pod" "$3"
  elif [ "$3" = stays ]; then
    kubelet_probe "$pod"
  elif [ -n "${kubelet_late[$pod]:-}" ]; then
    return
  elif [ -z "${kubelet_deadline[$pod]:-}" ]; then
    kubelet_deadline[$pod]=$((SECONDS + $4))
    kill -TERM "${pod_inner[$pod]}"
  elif [ $SECONDS -gt "${kubelet_deadline[$pod]}" ]; then
    die "$pod would be killed after its grace: $(tail -n 20 "$pod.log")"
  fi
}

kubelet_begin() { # POD UID
  local pod=$1 secret
  api_done GET "$kubelet_pods/$pod"
  cp cluster/answer "pods/$pod.json"
  for secret in $(jq -r '.spec.volumes[].secret.secretName // empty' "pods/$pod.json"); do kubelet_secret "$secret"; done
  kubelet_nets=$((kubelet_nets + 1))
  network_join $kubelet_nets
  kubelet_uid[$pod]=$2 kubelet_net[$pod]=$kubelet_nets kubelet_restarts[$pod]=0 kubelet_deadline[$pod]='' kubelet_over[$pod]=''
  pod_start "$(jq -r '.metadata.ownerReferences[0].name' "pods/$pod.json")" "$pod" $kubelet_nets
  kubelet_runs "$pod"
}

kubelet_secret() { # NAME
  local key
  api_done GET "/api/v1/namespaces/default/secrets/$1"
  for key in $(jq -r '.data | keys[]' cluster/answer); do
    jq -r --arg key "$key" '.data[$key]' cluster/answer | base64 -d | pod_secret "$1" "$key"
  done
}

# A container has begun. A pod without a readiness probe is then Ready.
kubelet_runs() { # POD
  kubelet_ready[$1]=$(jq '.spec.containers[0] | has("readinessProbe") | not' "pods/$1.json")
  kubelet_says "$1" Running "${kubelet_ready[$1]}" '{"running": {}}'
}

kubelet_probe() { # POD
  if [ "${kubelet_ready[$1]}" = true ] || [ $kubelet_probes = no ]; then return; fi
  pod_probe "$1" || return 0 # both probes of the driver ask the same
  kubelet_ready[$1]=true
  kubelet_says "$1" Running true '{"running": {}}'
}

# Its container has ended: that of an agent begins again, unless the pod is deleted; the driver's pod is over.
kubelet_ended() { # POD DELETED
  local pod=$1 again phase=Running
  { wait "${pod_outer[$pod]}"; } 2>/dev/null
  code=$?
  again=$(jq -r '.spec.restartPolicy' "pods/$pod.json")
  echo "$pod $code" >>ended
  if [ "$2" = stays ] && [ "$again" = Always ]; then
    kubelet_restarts[$pod]=$((kubelet_restarts[$pod] + 1))
    echo "$pod" >>restarted
    pod_container "$pod" "${kubelet_net[$pod]}"
    kubelet_runs "$pod"
    return
  fi
  if [ "$again" = Never ]; then phase=$([ $code = 0 ] && echo Succeeded || echo Failed); fi
  kubelet_says "$pod" "$phase" false "{\"terminated\": {\"exitCode\": $code}}"
  kubelet_over[$pod]=yes
}

# As a kubelet does when all of a pod is gone: the object goes at once, if it is still the same pod.
kubelet_remove() { # POD UID
  api_done DELETE "$kubelet_pods/$1" "{\"gracePeriodSeconds\": 0, \"preconditions\": {\"uid\": \"$2\"}}"
  kubelet_uid[$1]=''
}

kubelet_says() { # POD PHASE READY STATE
  local body
  body=$(jq --arg phase "$2" --argjson ready "$3" --argjson state "$4" --argjson restarts "${kubelet_restarts[$1]}" \
    --arg ip "$net.${kubelet_net[$1]}.2" '
      def condition(type; holds): {type: type, status: (if holds then "True" else "False" end)};
      {status: {phase: $phase, podIP: $ip, podIPs: [{ip: $ip}],
        conditions: [condition("PodScheduled", "Initialized"; true), condition("ContainersReady", "Ready"; $ready)],
        containerStatuses: [.spec.containers[0] | {name, image, imageID: "", ready: $ready, restartCount: $restarts,
          state: $state}]}}' "pods/$1.json")
  api_done PATCH "$kubelet_pods/$1/status" "$body"
}

# The answers of a name server. The file is written only when something has changed, as pods may read it at any time.
kubelet_names() {
  local names
  api_done GET /api/v1/namespaces/default/endpoints
  names=$(echo '127.0.0.1 localhost'
    jq -r '.items[] | select(.metadata.labels | has("service.kubernetes.io/headless")?) | .metadata.name as $name |
      .subsets[]?.addresses[]? | .ip + " " + $name' cluster/answer)
  [ "$names" = "$(cat hosts)" ] || echo "$names" >hosts
}
