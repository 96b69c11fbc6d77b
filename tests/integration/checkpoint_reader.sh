#!/usr/bin/env bash
# A checkpoint that the C code wrote is read by a reader that knows nothing but docs/checkpoints.md, and by the
# safetensors package; a file that this package wrote is read by the C code.
#
#     checkpoint_reader.sh WRITER
#
# The packages come from PyPI into a folder of the cache, once.
set -euo pipefail
writer=$(realpath "$1")
here=$(dirname "$(realpath "$0")")
venv=${XDG_CACHE_HOME:-${HOME:?}/.cache}/hvd-elastic/venv
python=$venv/bin/python
probe='import numpy, safetensors.numpy, xxhash'

if ! "$python" -c "$probe" 2>/dev/null; then
  mkdir -p "${venv%/*}"
  { exec 9>"$venv.lock" && flock 9 && python3 -m venv "$venv" &&
    timeout 300 "$python" -m pip -q install safetensors numpy xxhash && "$python" -c "$probe"; } >"$venv.log" 2>&1 || {
    echo "skipped: numpy, safetensors and xxhash cannot be had from PyPI: $(tail -n 1 "$venv.log")"
    exit 77
  }
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
"$writer" dir 5
"$python" "$here/../checkpoint_reader.py" dir/commit-1.5 back.safetensors >said
commit=$(((1 << 32) + 5))
cat >expected <<END
-1 weights float32 307200 $("$python" -c "
import numpy
print(numpy.sum(numpy.arange(307200, dtype='f4') % 1000 + numpy.float32($commit % 97 / 128), dtype='f8'))")
-1 notes uint8 999 $((999 * (97 + commit % 26))).0
-1 sampler uint8 11 $("$python" -c "print(float(sum(b'epoch %05u' % ($commit % 99999))))")
-1 step int64 1 $commit.0
0 mine int32 3 $((3 * (commit % 100) + 3)).0
1 mine int32 3 $((3000 + 3 * (commit % 100) + 3)).0
END
diff expected said
[ "$("$writer" --header back.safetensors)" = 'weights 7 1228800' ]

# The reader is no believer: a byte that changed is found, and so is a manifest that changed.
printf 'x' | dd of=dir/commit-1.5/rank-00001.t1a1.safetensors bs=1 seek=90 conv=notrunc 2>/dev/null
if "$python" "$here/../checkpoint_reader.py" dir/commit-1.5 >/dev/null 2>said; then exit 1; fi
grep -q 'rank-00001.t1a1.safetensors: damaged' said
printf ' ' >>dir/commit-1.5/manifest.json
if "$python" "$here/../checkpoint_reader.py" dir/commit-1.5 >/dev/null 2>said; then exit 1; fi
grep -q 'not complete' said
