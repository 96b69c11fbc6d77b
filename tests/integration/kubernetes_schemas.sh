#!/usr/bin/env bash
# The manifests of deploy/kubernetes agree with each other and with the published schemas of Kubernetes, of each version that
# kubernetes-validate has; and the test finds faults that are planted.
set -uo pipefail
tree=$(realpath "$(dirname "$0")/../..")
cd "$tree" || exit 1
base=deploy/kubernetes/base
pods=tests/shell/pods.py
skip() {
  echo "skipped: $*"
  exit 77
}
die() {
  echo "FAILED: $*"
  exit 1
}

python3 -c 'import yaml' 2>/dev/null || skip 'python3 has no module yaml (package python3-yaml)'
work=$(mktemp -d "${TMPDIR:-/tmp}/manifests-XXXXXX")
trap 'rm -rf "$work"' EXIT
python3 $pods check $base || die 'the manifests contradict each other, see above'
python3 $pods render $base >"$work/all.yaml" || die 'the kustomization cannot be rendered'
grep -q 'image: registry.example/train:1' "$work/all.yaml" || die 'the kustomization does not set the image'

# plant SED WORDS: a copy of the manifests with a fault, which the check names with these words.
plant() {
  rm -rf "$work/planted"
  cp -r $base "$work/planted"
  sed -i -E "$1" "$work"/planted/*.yaml
  if diff -r -q $base "$work/planted" >/dev/null; then die "the fault $1 cannot be planted"; fi
  if python3 $pods check "$work/planted" >"$work/faults" 2>&1; then die "the fault $1 is not found"; fi
  grep -q -- "$2" "$work/faults" || die "the fault $1 is called: $(cat "$work/faults")"
}
plant 's/--join=train-driver:7000/--join=train-driver:7001/' 'name different ports'
plant 's/--join=train-driver:7000/--join=driver:7000/' 'there is no Service driver'
plant 's/value: 50s/value: 60s/' 'HVD_TERMINATION_GRACE 60'
plant 's/0.0.0.0:9464/0.0.0.0:9465/' 'metrics.* different ports'
plant 's/runAsUser: 1000/runAsUser: 0/' 'runs as root'
plant 's/name: shm, mountPath/name: shn, mountPath/' 'volume shn is not defined'
plant 's/drop: \[ALL\]/drop: [NET_RAW]/' 'rights that it does not need'
plant 's/^  clusterIP: None/  clusterIP: ""/' 'not headless'
plant 's/replicas: 2/replicas: 2\n  replicas: 3/' 'stands there twice'
plant 's/^resources:/nameSuffix: -1\nresources:/' 'does not know'

python=$(scripts/kubernetes) || skip 'the schemas of Kubernetes are not there (./dev setup kubernetes); all else was judged'
schemas=$("$python" -c 'import kubernetes_validate as k, os; print(os.path.dirname(k.__file__))')/kubernetes-json-schema
versions=$(find "$schemas" -maxdepth 1 -name 'v*-strict' -printf '%f\n' | sed -E 's/^v([0-9]+\.[0-9]+)\..*/\1/' | sort -V)
[ -n "$versions" ] || die "no schemas in $schemas"
judge() { "$python" -m kubernetes_validate --strict --quiet -k "$1" "$2" >"$work/said" 2>&1; }

judged=0
for version in $versions; do
  judge "$version" "$work/all.yaml" || die "Kubernetes $version: $(cat "$work/said")"
  judged=$((judged + 1))
done
for fault in 's/podManagementPolicy/podManagmentPolicy/' 's/replicas: 2/replicas: two/' 's/runAsNonRoot: true/runAsNonRoot: "yes"/'; do
  sed -E "$fault" "$work/all.yaml" >"$work/wrong.yaml"
  if judge "${versions##*$'\n'}" "$work/wrong.yaml"; then die "the schemas do not find the fault $fault"; fi
done
echo "$judged versions of Kubernetes, from ${versions%%$'\n'*} to ${versions##*$'\n'}, take the manifests"
