# shellcheck shell=bash disable=SC2154 # what lib.sh sets
# Pods of deploy/kubernetes without a cluster: what a kubelet does for the commands, paths, users and signals of a manifest.
# Sourced after lib.sh and networks.sh, in namespaces of the test (networks_alone):
#
#     pods_begin deploy/kubernetes/base
#     pod_address train-driver 1             what DNS says: the address of network 1; without a number: nothing
#     training=(--steps 50) pod_settings=(HVD_LEASE=5s)    words after those of the driver; variables of all pods
#     pod_start train-driver d1 1            a new pod of that Job in network 1; its output is in d1.log
#     pod_probe d1 || ...                    its liveness probe, once; what it says is in probe.out
#     pod_stop d1 137                        SIGTERM, the grace of the manifest, and the code with which it must have ended
#     pod_kill d1                            the node is lost
#     pod_exec d1 WORDS...                   kubectl exec
#
# A pod has its own file system, process ids and host name, the user and no right of the manifest, and its volumes with the
# owners and modes that a kubelet gives them.
declare -A pod_outer=() pod_inner=() pod_template=()
training=() pod_settings=()
pods_tool=$(dirname "${BASH_SOURCE[0]}")/pods.py

pods_begin() {
  manifests=$1
  python3 -c 'import yaml' 2>/dev/null || skip 'python3 has no module yaml (package python3-yaml)'
  for program in setpriv nsenter curl; do
    command -v $program >/dev/null || skip "there is no $program"
  done
  unshare -p -f true 2>/dev/null || skip 'no namespaces of process ids can be made here'
  python3 "$pods_tool" check "$manifests" >faults || die "the manifests contradict each other: $(cat faults)"
  build=$(realpath "$(dirname "$elastic")/..")
  chmod 755 "$folder" # pods have another user than this test
  mkdir pods claims seen
  chmod 1777 seen
  say=$folder/seen/say
  : >"$say"
  chmod 666 "$say"
  # The image has the program under another name.
  pods_program=$trainer
  trainer=/opt/train/train
  printf '127.0.0.1 localhost\n' >hosts
  head -c 32 /dev/urandom | od -An -v -tx1 | tr -d ' \n' | pod_secret train-token token
}

# A secret with the value on the standard input, as it lies in its volume: a link to the folder of this version of it.
pod_secret() { # NAME KEY
  mkdir -p "secrets/$1/..1"
  cat >"secrets/$1/..1/$2"
  ln -sfn ..1 "secrets/$1/..data"
  ln -sf "..data/$2" "secrets/$1/$2"
  chown -R 0:1000 "secrets/$1"
  chmod 440 "secrets/$1/..1/$2"
}

# A pod as its template in the manifests says, or as an API server has it, if a kubelet has got it from there (kubelet.sh).
pod_described() { # POD
  if [ -e "pods/$1.json" ]; then
    python3 "$pods_tool" object "pods/$1.json"
  else
    python3 "$pods_tool" pod "$manifests" "${pod_template[$1]}"
  fi
}

# The file is written in place, as pods have it mounted.
pod_address() {
  printf '127.0.0.1 localhost\n' >hosts
  [ -z "${2:-}" ] || printf '%s %s\n' "$net.$2.2" "$1" >>hosts
}

# A volume of the manifest: made once, with the group of the pod and writable for it.
pod_claim() {
  [ ! -d "claims/$1" ] || return 0
  mkdir "claims/$1"
  chown "0:$pod_gid" "claims/$1"
  chmod 2775 "claims/$1"
}

# pod_run POD NET WORDS MOUNTS: until its first process has ended. WORDS and MOUNTS are names of arrays.
pod_run() {
  local -n run_words=$3 run_mounts=$4
  {
    declare -p folder build elastic pods_program pod_uid pod_gid pod_env pod_settings
    printf 'pod=%q\nwords=(%s)\nmounts=(%s)\n' "$1" "${run_words[*]@Q}" "${run_mounts[*]@Q}"
  } >"pods/$1.settings"
  BODY_TEST=$folder exec ip netns exec "net$2" unshare --pid --fork --kill-child --mount --uts \
    "${pods_tool%.py}_inside.sh" "$folder/pods/$1.settings"
}

pod_start() { # TEMPLATE POD NET
  local pod=$2
  rm -rf "pods/$pod.scratch" # an emptyDir is that of one pod
  mkdir -m 777 "pods/$pod.scratch"
  chmod 777 "pods/$pod.scratch"
  pod_template[$pod]=$1
  eval "$(pod_described "$pod")"
  for mount in "${pod_mounts[@]}"; do
    [[ $mount != claim* ]] || pod_claim "$(cut -d ' ' -f 2 <<<"$mount")"
  done
  [ ${#pod_init_words[@]} = 0 ] || (pod_run "$pod" "$3" pod_init_words pod_init_mounts) >>"$pod.log" 2>&1 </dev/null ||
    die "the container before that of $pod has failed: $(cat "$pod.log")"
  pod_container "$pod" "$3"
}

# The container of a pod, for the first time or once more.
pod_container() { # POD NET
  local pod=$1
  eval "$(pod_described "$pod")"
  if [ "${pod_template[$pod]}" = train-driver ]; then pod_words+=("${training[@]}"); fi
  pod_run "$pod" "$2" pod_words pod_mounts >>"$pod.log" 2>&1 </dev/null &
  pod_outer[$pod]=$!
  await_true "the root of $pod" pod_has_root "$pod"
}

# In pod_inner: its first process, once that one exists.
pod_has_root() {
  is_alive "${pod_outer[$1]}" || die "$1 does not start: $(cat "$1.log")"
  read -r "pod_inner[$1]" _ 2>/dev/null <"/proc/${pod_outer[$1]}/task/${pod_outer[$1]}/children" || true
  [ "$(readlink "/proc/${pod_inner[$1]:-none}/root")" = "$folder/pods/$1" ]
}

pod_ended() { # POD CODE
  { await_end "${pod_outer[$1]}"; } 2>/dev/null || die "$1 does not end: $(tail -n 20 "$1.log")"
  { wait "${pod_outer[$1]}"; } 2>/dev/null
  code=$?
  [ "$code" = "$2" ] || die "$1 has ended with $code, not $2: $(tail -n 20 "$1.log")"
}

# As a kubelet ends a pod: a pod that needs SIGKILL after its grace is a fault.
pod_stop() { # POD CODE
  eval "$(pod_described "$1" | grep '^pod_grace=')"
  kill -TERM "${pod_inner[$1]}"
  await_end "${pod_inner[$1]}" "$pod_grace" || die "$1 would be killed after its grace of $pod_grace s"
  pod_ended "$1" "$2"
}

pod_kill() {
  kill -KILL "${pod_inner[$1]}"
  { await_end "${pod_outer[$1]}" && wait "${pod_outer[$1]}"; } 2>/dev/null || true # unshare tells no signal
}

pod_exec() { # POD WORDS...
  local pod=$1
  shift
  eval "$(pod_described "$pod")"
  nsenter -t "${pod_inner[$pod]}" -m -u -n -p -r -w setpriv --reuid "$pod_uid" --regid "$pod_uid" --groups "$pod_gid" \
    --no-new-privs --bounding-set=-all --inh-caps=-all \
    env -i PATH=/usr/local/bin:/usr/bin:/bin BODY_TEST="$folder" "${pod_env[@]}" "$@"
}

pod_probe() { # POD
  eval "$(pod_described "$1")"
  if [ -n "$pod_probe_http" ]; then
    nsenter -t "${pod_inner[$1]}" -n curl -sf -m "$pod_probe_seconds" "http://$(ip_of "$1"):$pod_probe_http" >probe.out 2>&1
  else
    # A time limit inside the pod, as the probe's process must not outlive it.
    pod_exec "$1" timeout "$pod_probe_seconds" "${pod_probe[@]}" >probe.out 2>&1
  fi
}

# The address of a pod in its network.
ip_of() { nsenter -t "${pod_inner[$1]}" -n hostname -I | tr -d ' '; }
