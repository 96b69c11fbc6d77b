# shellcheck shell=bash disable=SC2154 # what lib.sh sets
# The servers of a real Kubernetes cluster, but for its nodes: etcd, kube-apiserver, kube-controller-manager, kube-scheduler.
# Sourced after lib.sh and networks.sh, in namespaces of the test (networks_alone), in which their ports are free:
#
#     cluster_begin
#     kube apply -f FILE                kubectl
#     api GET /api/v1/nodes             in cluster/answer what the API server answers, in $status its HTTP status
#     api POST /api/v1/nodes "$body"
#     as=NAME api GET ...               as another user
#     cluster_end
cluster_programs=$("$(dirname "${BASH_SOURCE[0]}")/../../scripts/kubernetes-server") ||
  skip 'the servers of Kubernetes are not built (./dev setup kubernetes-server, 10 to 20 minutes)'
for program in kubectl jq curl openssl; do
  command -v $program >/dev/null || skip "the program $program is not installed (./dev setup kubernetes-server)"
done
cluster=1 # one server of etcd
. "$(dirname "${BASH_SOURCE[0]}")/etcd.sh"
cluster_url=https://127.0.0.1:6443
declare -A cluster_pids=()

cluster_begin() {
  mkdir -p cluster/home
  cluster_token=$(openssl rand -hex 16)
  echo "$cluster_token,admin,1,system:masters" >cluster/tokens
  cluster_config >cluster/config
  openssl genrsa -out cluster/key 2048 2>/dev/null
  ip addr add "$net.0.1/32" dev lo # an API server refuses to advertise 127.0.0.1
  etcd_server 1 --unsafe-no-fsync
  etcd_await 1
  cluster_server kube-apiserver --etcd-servers="http://$etcd_net.1:2379" --bind-address=127.0.0.1 --secure-port=6443 \
    --cert-dir="$folder/cluster/certs" --advertise-address="$net.0.1" --service-cluster-ip-range=10.96.0.0/24 \
    --service-account-issuer=https://kubernetes.default.svc --service-account-signing-key-file="$folder/cluster/key" \
    --service-account-key-file="$folder/cluster/key" --token-auth-file="$folder/cluster/tokens" --authorization-mode=RBAC
  await_true 'the API server' cluster_is_ready
  # Nodes of this test send no heartbeats: none of them is to be given up.
  cluster_server kube-controller-manager --kubeconfig="$folder/cluster/config" --leader-elect=false --port=0 --secure-port=0 \
    --node-monitor-period=1s --node-monitor-grace-period=24h --controllers="$(cluster_controllers)"
  cluster_server kube-scheduler --kubeconfig="$folder/cluster/config" --leader-elect=false --port=0 --secure-port=0
  await_true 'the service account of pods' cluster_has /api/v1/namespaces/default/serviceaccounts/default
}

cluster_config() {
  cat <<END
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "$cluster_url", certificate-authority: $folder/cluster/certs/apiserver.crt}}]
users: [{name: admin, user: {token: "$cluster_token"}}]
contexts: [{name: c, context: {cluster: c, user: admin}}]
current-context: c
END
}

# The controllers that have to do with the manifests; others would only take time.
cluster_controllers() {
  paste -s -d , <<'END'
statefulset
job
disruption
endpoint
endpointslice
nodelifecycle
podgc
garbagecollector
namespace
serviceaccount
persistentvolume-binder
pv-protection
pvc-protection
END
}

cluster_server() { # PROGRAM WORDS...
  local name=$1
  shift
  BODY_TEST=$folder "$cluster_programs/$name" "$@" >"cluster/$name.log" 2>&1 </dev/null &
  cluster_pids[$name]=$!
}

cluster_is_ready() {
  is_alive "${cluster_pids[kube-apiserver]}" || die "the API server has ended: $(tail -n 20 cluster/kube-apiserver.log)"
  [ -s cluster/certs/apiserver.crt ] && api GET /readyz 2>/dev/null && [ "$status" = 200 ]
}

cluster_has() { # PATH
  api GET "$1"
  [ "$status" = 200 ]
}

api() { # METHOD PATH [BODY]
  local words=(-sS -m 60 -X "$1" -o cluster/answer -w '%{http_code}' --cacert cluster/certs/apiserver.crt) type=application/json
  if [ "$1" = PATCH ]; then type=application/merge-patch+json; fi
  if [ $# -gt 2 ]; then words+=(-H "Content-Type: $type" --data "$3"); fi
  if [ -n "${as:-}" ]; then words+=(-H "Impersonate-User: $as"); fi
  status=$(curl "${words[@]}" -H "Authorization: Bearer $cluster_token" "$cluster_url$2")
}

# api_done METHOD PATH [BODY]: the same, and it must succeed.
api_done() {
  api "$@" || die "the API server does not answer: $(tail -n 20 cluster/kube-apiserver.log)"
  [[ $status == 2?? ]] || die "$1 $2: $status $(cat cluster/answer)"
}

# field PATH FILTER: of an object, by jq.
field() {
  api_done GET "$1"
  jq -r "$2" cluster/answer
}

# kubectl keeps what it has learned of the server in its home.
kube() { HOME=$folder/cluster/home BODY_TEST=$folder timeout "$PATIENCE" kubectl --kubeconfig="$folder/cluster/config" "$@"; }

cluster_end() {
  local name
  for name in kube-scheduler kube-controller-manager kube-apiserver; do
    kill -TERM "${cluster_pids[$name]}"
    { await_end "${cluster_pids[$name]}"; } 2>/dev/null || die "$name does not end: $(tail -n 20 "cluster/$name.log")"
  done
  etcd_kill 1
}
