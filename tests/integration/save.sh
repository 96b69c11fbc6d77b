#!/usr/bin/env bash
# A training that rank 0 writes to disk (hvd_state_save) goes on after all of its processes were killed, by itself and
# as a job on two hosts, and ends as one in peace; other programs find the types of its entries in the file.
#
#     save.sh ELASTIC MLP
. "$(dirname "$0")/../shell/lib.sh"
test_begin "$@"
words=(--epochs 20 --print-every 10 --save-every 10)

digest() { sed -n 's/.*final params //p' "$1" | sort -u; }

# ---- a program alone: the same bits as in peace ----
"$trainer" "${words[@]}" >peace || die 'mlp does not run'
"$trainer" "${words[@]}" --save saved --step-ms 5 >first 2>&1 &
alone=$!
await first '^step 50,'
kill -KILL $alone 2>/dev/null || true # on a busy machine it may be done already
wait $alone 2>/dev/null
"$trainer" "${words[@]}" --save saved >second || die "mlp does not go on: $(cat second)"
! grep -qE '^step 40,' second || die "it does not go on where it was saved: $(head -n 2 second)"
[ "$(digest second)" = "$(digest peace)" ] || die "it ends otherwise than in peace"

# ---- its file, as another program reads it ----
file=$(echo saved/commit-0.*/replicated.safetensors)
python3 - "$file" >types <<'PYTHON' || die 'the file cannot be read'
import json, struct, sys
data = open(sys.argv[1], "rb").read()
length = struct.unpack("<Q", data[:8])[0]
entries = json.loads(data[8:8 + length])
entries.pop("__metadata__")
for name in sorted(entries):
    print(name, entries[name]["dtype"], *entries[name]["shape"])
begin, end = entries["steps"]["data_offsets"]
print("at", struct.unpack("<q", data[8 + length:][begin:end])[0])
PYTHON
[ "$(tr '\n' ' ' <types)" = 'curve F64 400 moments F64 1394 params F64 697 samples I64 2 steps I64 1 at 400 ' ] ||
  die "the file has other entries: $(cat types)"

# ---- a job: every process of it is killed ----
"$trainer" "${words[@]}" --curve curve.peace >peace
new_job
start -np 2 --min-np 2 -H 127.0.0.1:1,127.0.0.2:1 "$trainer" "${words[@]}" --save "$folder/job" --step-ms 20
await "$out" 'step 50,'
lose_all
rm -rf "$HOME/.local" # the lock files of agents that were killed
new_job
start -np 2 --min-np 2 -H 127.0.0.1:1,127.0.0.2:1 "$trainer" "${words[@]}" --save "$folder/job" --curve "$folder/curve"
finish 0
! grep -qE 'step 40,' "$out" || die "the job does not go on where it was saved: $(cat "$out")"
[ "$(digest "$out" | wc -l)" = 1 ] || die 'the workers have ended with different parameters'
paste -d ' ' curve.peace "$folder/curve" |
  awk '{ d = $2 - $4; if (d < 0) d = -d; if ($1 != $3 || d > 1e-6) { print "step " $1 ": " $2 " and " $4; exit 1 } }
       END { exit NR != 400 }' >differs || die "another loss than in peace: $(cat differs)"
say_line 'killed and gone on: alone with the same bits, a job of two hosts with the same losses'
