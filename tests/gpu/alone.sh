#!/usr/bin/env bash
# The transformer on a device, by itself: its gradients are the slopes of its loss, its curve is that of gpt
# on the CPU with the same words, and it is the same curve, bit for bit, when it is made again.
#
#     alone.sh ELASTIC PROGRAM GPT WORD...
. "$(dirname "$0")/../shell/lib.sh"
gpt=$(realpath "$3")
test_begin "$@"
words=("${@:4}")

"$gpt" "${words[@]}" --curve curve >/dev/null || die 'gpt by itself'
"$trainer" "${words[@]}" --compare curve --curve first >said || die "$(cat said)"
"$trainer" "${words[@]}" --curve second >/dev/null || die 'the second time'
cmp first second || die 'the curve is another one when it is made again'
"$trainer" "${words[@]}" --width 4 --check-gradients >gradients || die "$(cat gradients)"
say_line "$(sed -n '/compared/p' said); $(cat gradients)"
