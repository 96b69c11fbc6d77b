#!/usr/bin/env bash
# The harm: an observer of the network captures a whole job and finds a secret in it, or with --data-security encrypted a
# number that the workers have added up. The same job with --data-security none shows that the observer would find it.
#
#     observer.sh ELASTIC PLAIN_TRAINER FLOOD WIRETAP
. "$(dirname "$0")/lib.sh"
attack_begin "$@"
must_be_alone
wiretap=$(realpath "$4")
number=SECRNMBR # the eight bytes of the number that plain_trainer adds up

taps() { [ -s "$folder/$1.tapped" ] || ! is_alive "$tap"; } # MODE

# observe MODE: a job of two hosts, from its beginning to its end, in $folder/MODE.capture.
observe() {
  local tap
  "$wiretap" "$folder/$1.capture" >"$folder/$1.tapped" 2>&1 &
  tap=$!
  await_true 'a word of the wiretap' taps "$1"
  grep -q listens "$folder/$1.tapped" || skip "$(cat "$folder/$1.tapped")"
  start -np 2 -H 127.0.0.1:1,127.0.0.2:1 --data-security "$1" "$trainer"
  finish 0
  key=$(sqlite3 -readonly "$state/job.db" "SELECT key FROM fact")
  kill -TERM "$tap"
  wait "$tap"
  say_line "$1: $(tail -1 "$folder/$1.tapped")"
}

# holds FILE HEX: the bytes are somewhere in the file.
holds() {
  python3 -c 'import sys; sys.exit(bytes.fromhex(sys.argv[2]) not in open(sys.argv[1], "rb").read())' "$1" "$2"
}

# round_secret KEY ROUND: PROTOCOL.md, ROUND.
round_secret() {
  python3 - "$1" "$2" <<'PY'
import hashlib, hmac, struct, sys
def mac(key, data): return hmac.new(key, data, hashlib.sha256).digest()
info = b"hvd round\0" + struct.pack("<Q", int(sys.argv[2]))
print(mac(mac(b"\0" * 32, bytes.fromhex(sys.argv[1])), info + b"\1").hex())
PY
}

no_secret() {
  local round
  [ -n "$key" ] || die 'the key of the job was not found in its folder'
  if holds "$1" "$key" || holds "$1" "$(printf %s "$key" | od -An -v -tx1 | tr -d ' \n')"; then
    die "$1 holds the key of the job"
  fi
  for round in 1 2 3; do
    ! holds "$1" "$(round_secret "$key" "$round")" || die "$1 holds the secret of round $round"
  done
}

for mode in encrypted authenticated none; do
  job=$mode observe "$mode"
  no_secret "$folder/$mode.capture"
done
hex=$(printf %s "$number" | od -An -tx1 | tr -d ' \n')
! holds "$folder/encrypted.capture" "$hex" || die 'the capture of the encrypted job holds the number'
holds "$folder/none.capture" "$hex" || die 'the capture in clear does not hold the number, so this shows nothing'
