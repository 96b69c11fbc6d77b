#!/usr/bin/env bash
# The harm: a device between the hosts of a whole job changes, drops, repeats, swaps or injects bytes of its connections,
# or replays what it has read, and a sum, a sample or a commit is wrong, a connection goes on as if nothing were, a host
# stays on the blacklist, or the job does not train on when the device is gone. The job runs in network namespaces, and
# chaos is the judge (docs/chaos.md).
#
#     mitm_job.sh CHAOS REPORT
chaos=$1 report=$2 faults=8
[ "${ATTACK:-small}" != large ] || faults=${ATTACK_FAULTS:-60}
said=$(mktemp)
trap 'rm -f "$said"' EXIT

# The limits are those of chaos.networks: other tests may keep a process waiting that no fault strikes.
"$chaos" --lease 10s --patience 3m --where networks --hosts 3 --only mitm-driver,mitm-members,replay,replay-driver \
  --faults "$faults" --seed "${ATTACK_SEED:-0}" --report "$report" >"$said" 2>&1
code=$?
cat "$said"
[ "$code" = 0 ] || exit "$code"
# A device that did nothing would show nothing.
least=2
if ! [ -r /dev/net/tun ] || ! [ -w /dev/net/tun ]; then
  echo 'mitm_job: skipped: the device that harms bytes, as there is no /dev/net/tun'
  least=0
fi
awk -v least=$least '
  { line = $0; gsub(/,/, "", line); n = split(line, word, " ")
    for (i = 2; i <= n; i++) {
      if (word[i] ~ /^(changed|dropped|repeated|swapped|injected)$/) harms += word[i - 1]
      if (word[i] == "replayed") replays += word[i - 1]
    } }
  END {
    printf "mitm_job: %d connections were harmed, %d handshakes replayed\n", harms, replays
    exit !(harms >= least && replays >= 20)
  }' "$said"
