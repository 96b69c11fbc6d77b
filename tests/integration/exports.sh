#!/usr/bin/env bash
# libhvd exports what hvd.h declares, and nothing else.
#
#     exports.sh LIBRARY HEADER
set -euo pipefail
library=$1
header=$2

# The header as one line, without directives and comments.
code=$(sed '/^[[:space:]]*#/d' "$header" | tr '\n' ' ' |
  sed 's|/\*[^*]*\*\+\([^/*][^*]*\*\+\)*/||g')
# Whatever looks like a function of ours, and which of them HVD_API marks.
named=$({ grep -o '\<hvd_[a-z0-9_]*(' <<<"$code" || true; } | tr -d '(' | sort -u)
declared=$({ grep -o 'HVD_API[^;(]*(' <<<"$code" || true; } | sed 's/(//; s/.*[ *]//' | sort)
exported=$(nm -D --defined-only "$library" | awk '{ sub(/@.*/, "", $NF); print $NF }' | sort)

status=0
# complain WHAT LEFT RIGHT: names the lines that only LEFT has.
complain() {
  local only
  only=$(comm -23 <(echo "$2") <(echo "$3"))
  if [ -n "$only" ]; then
    echo "$1: ${only//$'\n'/, }" >&2
    status=1
  fi
}
complain "in hvd.h without HVD_API" "$named" "$declared"
complain "declared in hvd.h, but not exported" "$declared" "$exported"
complain "exported, but not declared in hvd.h" "$exported" "$declared"
if [ -z "$declared" ]; then
  echo "$header: no function is declared, so nothing was compared" >&2
  status=1
fi
[ $status -ne 0 ] || echo "$(wc -l <<<"$declared") functions, declared and exported"
exit $status
