#!/usr/bin/env bash
# For each mistake that the trainers, the server of S3, or the log make on purpose a campaign has to end with 1 and name
# it. A campaign waits for --leak-patience before it reports a leak, or a line that the log lacks; what is planted here
# never ends, so the wait is short. With a server of S3 no leak is planted, and a slow server removes old checkpoints
# late: the wait is the usual one.
#
#     finds.sh CHAOS DIRECTORY
set -euo pipefail
[ $# = 2 ] || { echo "usage: finds.sh CHAOS DIRECTORY" >&2; exit 2; }
chaos=$1 folder=$2
mkdir -p "$folder"

# The folder that a violation keeps is of no use here.
forget() { # OUTPUT
  local kept
  kept=$(sed -n 's/^kept: //p' "$1")
  case $kept in */chaos-*) rm -rf -- "$kept" ;; esac
}

finds() { # SLIP WHAT-IS-SAID [OPTIONS...]
  local out=$folder/$1.txt code=0 only=worker-kill,rank0-kill more=("${@:3}")
  [ ${#more[@]} -gt 0 ] || more=(--only "$only" --leak-patience 10s)
  "$chaos" --lease 10s --patience 3m --slip "$1" --seed 1 --faults 40 "${more[@]}" \
    --report "$folder/$1" >"$out" 2>&1 || code=$?
  forget "$out"
  if [ "$code" != 1 ] || ! grep -q "VIOLATION.*$2" "$out"; then
    cat "$out"
    echo "finds.sh: --slip $1: exit code $code, and not a word of \"$2\"" >&2
    exit 1
  fi
  echo "$1: $(grep -o 'VIOLATION: fault.*' "$out")"
}

finds state 'has another state than the others'
finds sample 'had 1024 samples with tally'
finds commit 'work was lost'
finds memory 'shared memories are mapped'
finds child 'it does not wait for them'
finds nameless 'no warning or error of driver.log has'
finds accuse 'accuses 127.0.0.1, which was not hit' --only worker-freeze-short,keeper-freeze --leak-patience 10s
if "$(dirname "$0")/../../scripts/moto" >/dev/null; then
  finds bucket 'was complete: work was lost' --checkpoints s3 --only pool-reclaimed,worker-kill,rank0-kill
else
  echo "skipped: bucket: moto is not there; ./dev setup s3 installs it"
fi
