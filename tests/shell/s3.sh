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
  local until=$((SECONDS + PATIENCE))
  unset "${!AWS_@}"
  # without the mark of the test: it outlives a pool that is killed
  "$s3_python" "$(dirname "$script")/../s3/s3_server.py" 127.0.0.1 "$folder/s3.url" \
    >"$folder/s3.log" 2>&1 </dev/null &
  s3_pid=$!
  helpers+=("$s3_pid")
  until [ -s "$folder/s3.url" ]; do
    if [ $SECONDS -ge $until ] || ! is_alive "$s3_pid"; then die "the server of S3 does not start: $(cat "$folder/s3.log")"; fi
    timeout "$NAP" tail -f /dev/null
  done
  AWS_ENDPOINT_URL=$(cat "$folder/s3.url")
  export AWS_ENDPOINT_URL AWS_ACCESS_KEY_ID=AKTEST AWS_SECRET_ACCESS_KEY=sEcret/+123 AWS_EC2_METADATA_DISABLED=true
  s3_ask '/-/bucket?name=kept' >/dev/null
}

s3_fault() { s3_ask "/-/fault?$1" >/dev/null; }
s3_counts() { s3_ask /-/counts; }

s3_stop() {
  kill -KILL "$s3_pid" 2>/dev/null
  { wait "$s3_pid"; } 2>/dev/null
}
