#!/usr/bin/env bash
# The questions of ./dev bench gpu, asked of the stand-in (HVD_CUDA_LIBRARY, HVD_NCCL_LIBRARY): each is answered,
# and as the stand-in is known to behave.
#
#     questions.sh BENCH_GPU
set -uo pipefail
folder=$(mktemp -d "${TMPDIR:-/tmp}/questions-XXXXXX")
trap 'rm -rf "$folder"' EXIT
said=$folder/said

die() {
  printf 'FAILED: %s\n' "$*"
  cat "$said"
  exit 1
}

# says WORDS REGEX...: with these words it ends well, and says so.
says() {
  local words=$1 regex
  shift
  # shellcheck disable=SC2086 # words are several
  timeout 120 "$program" --json "$folder/json" $words >"$said" 2>&1 || die "$words: exit code $?"
  for regex in "$@"; do grep -qE "$regex" "$said" || die "$words: nothing like '$regex'"; done
  python3 -c 'import json, sys; json.load(open(sys.argv[1]))' "$folder/json" || die "$words: that is no JSON"
}
program=$1
run=$(dirname "$0")/../../bench/gpu/run

says 'hosts' 'THE STAND-IN' 'sums are right +3 yes'
! grep -q failed "$said" || die 'hosts: somebody has failed'
says 'plain' 'Duplicate GPU' 'NCCL takes them +2 no'
says '--ranks 3 cost' 'revoke: until the user' 'shrink, with a kernel that waits for ever, until ready +3 ' 'and a fresh one'
! grep -q 'failed\|not ended' "$said" || die 'cost: somebody has failed'
says 'killed' 'without a word in 5 s' 'then a revoke'
says 'copies' 'a memfd that is pinned' 'a copy each'
code=0
HVD_CUDA_LIBRARY=/nowhere "$program" >"$said" 2>&1 || code=$?
[ $code = 77 ] || die "without a GPU: exit code $code"
grep -q 'skipped: no GPU: .*nowhere' "$said" || die 'without a GPU: no reason is said'
# what bench/gpu/run lists is what there is, and the two that it answers itself
"$program" --help 2>&1 | grep '^  ' >"$folder/ours"
"$run" --help | grep '^  ' >"$said"
[ -s "$folder/ours" ] || die 'no questions are listed'
diff <(grep -v '^  \(commit\|reduce\) ' "$said") "$folder/ours" || die "$run --help lists others"
code=0
"$run" nonsense >"$said" 2>&1 || code=$?
[ $code = 2 ] || die "a question that there is not: exit code $code"
echo 'each question is answered'
