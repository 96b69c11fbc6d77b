# shellcheck shell=bash
# shellcheck disable=SC2154 # what lib.sh sets
# A real server of S3 for a test, with faults on demand. Sourced after lib.sh, before test_begin changes HOME:
#
#     s3_start                                  the bucket "kept" is there; AWS_* say how to come in
#     s3_fault 'kind=500,503&percent=20'        see tests/s3/s3_server.py
s3_python=$("$(dirname "$script")/../../scripts/moto") ||
  skip "moto is not there; ./dev setup s3 installs it"

# s3_ask PATH [CURL WORDS...]
s3_ask() {
  local path=$1
  shift
  "$s3_python" - "$AWS_ENDPOINT_URL$path" "$@" <<'PY'
import sys, urllib.request
with urllib.request.urlopen(urllib.request.Request(sys.argv[1], method=sys.argv[2] if len(sys.argv) > 2 else "GET")) as got:
    sys.stdout.write(got.read().decode())
PY
}

s3_start() {
  unset "${!AWS_@}"
  serve s3 "$s3_python" "$(dirname "$script")/../s3/s3_server.py"
  AWS_ENDPOINT_URL=$address
  export AWS_ENDPOINT_URL AWS_ACCESS_KEY_ID=AKTEST AWS_SECRET_ACCESS_KEY=sEcret/+123 AWS_EC2_METADATA_DISABLED=true
  s3_ask '/-/bucket?name=kept' >/dev/null
}

s3_fault() { s3_ask "/-/fault?$1" >/dev/null; }
s3_counts() { s3_ask /-/counts; }
