# shellcheck shell=bash
# For tests of a tool that an operator runs by itself, whose program is the first word of the test.
# Sourced by tests/integration/hvd_*.sh:
#
#     . "$(dirname "$0")/../shell/tool.sh"
#     expect 0 out 'ranks 0-1' one
#
# The test runs in a new folder, which ends with it, and without the variables of hvd-elastic.
set -euo pipefail
program=$(realpath "$1")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
unset "${!HVD_@}"

# expect CODE STREAM TEXT ARGS...: the program ends with CODE, and STREAM (out, err) holds TEXT.
expect() {
  local code=0 want=$1 stream=$2 text=$3
  shift 3
  "$program" "$@" >out 2>err || code=$?
  if [ "$code" != "$want" ] || ! grep -qF -- "$text" "$stream"; then
    echo "${program##*/} $*: exit $code, not $want, or no '$text' in its $stream:"
    cat out err
    exit 1
  fi
}
