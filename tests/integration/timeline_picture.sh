#!/usr/bin/env bash
# The picture of a late rank: a timeline of five steps, in which rank 2 computes 20 ms longer, is opened in
# Perfetto's user interface, and the picture is taken. Skipped where Chromium or the viewer is missing.
#
#     timeline_picture.sh ELASTIC TRAINER [PICTURE]
. "$(dirname "$0")/../shell/lib.sh"
picture=$(realpath "${3:-/dev/null}")
skip() { echo "SKIP: $1; ./dev setup picture installs it" && exit 77; }
command -v chromium >/dev/null || skip 'no chromium'
ui=$("$(dirname "$0")/../../scripts/viewer") || skip 'no viewer'
test_begin "$@"
[ "$picture" != /dev/null ] || picture=$folder/late.png
start -np 4 -H 127.0.0.1:2,127.0.0.2:2 -- "$trainer" --step-ms 5 --steps 30 --late-ms 20 --late-rank 2 \
  --own-timeline "$folder/late.json" --timeline-from 10 --timeline-to 15
finish 0
python3 "$(dirname "$script")/../shell/timeline_picture.py" "$ui" late.json "$picture" \
  'rank 0, 127.0.0.1' 'rank 1, 127.0.0.1' 'rank 2, 127.0.0.2' 'rank 3, 127.0.0.2' >said 2>&1 || die "$(cat said)"
file=$(head -c 4 "$picture" | tail -c 3)
[ "$file" = PNG ] || die "no picture: $picture"
[ "$(wc -c <"$picture")" -gt 20000 ] || die 'the picture is empty'
say_line "the picture of rank 2, which is late, has $(wc -c <"$picture") bytes"
