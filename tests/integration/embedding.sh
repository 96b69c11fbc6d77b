#!/usr/bin/env bash
# The code in docs/embedding.md is that of the examples, word for word, and they compile. The whole program at the end of the
# page is taken from the page, compiled as the page says, and run: alone, and as a job of two workers.
#
#     embedding.sh SOURCE-FOLDER C-COMPILER BUILD-FOLDER FLAGS...
set -euo pipefail
cd "$1"
cc=$2
build=$3
sanitize=("${@:4}")
page=docs/embedding.md
examples=(examples/plain.c examples/elastic.c examples/overlap.c examples/minimal.c)

for example in "${examples[@]}"; do
  "$cc" -std=c11 -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror -Iinclude -fsyntax-only "$example"
done

code=$(cat "${examples[@]}")$'\n'
blocks=0 line=0 first=0 block='' whole=''
while IFS= read -r text; do
  line=$((line + 1))
  if [ "$text" = '```c' ]; then
    first=$line block=
  elif [ "$text" = '```' ] && [ $first != 0 ]; then
    blocks=$((blocks + 1))
    if [[ $code != *"$block"* ]]; then
      echo "$page:$first: this is not in ${examples[*]}:" "$block" >&2
      exit 1
    fi
    if [[ $block == *'int main(void)'* && $block == *'#include <hvd/hvd.h>'* ]]; then whole=$block; fi
    first=0
  elif [ $first != 0 ]; then
    block+=$text$'\n'
  fi
done <"$page"
[ $blocks -ge 5 ] || { echo "$page: only $blocks blocks of code" >&2 && exit 1; }
[ -n "$whole" ] || { echo "$page: no whole program" >&2 && exit 1; }

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
printf %s "$whole" >"$folder/whole.c"
"$cc" -std=c11 -Wall -Wextra -Wpedantic -Werror "${sanitize[@]}" -Iinclude "$folder/whole.c" -L"$build/worker" -lhvd \
  -Wl,-rpath,"$build/worker" -o "$folder/whole"
learned() { grep -qE 'y = 0\.500 -2\.000 x \+?(3\.000|2\.999) x' "$folder/said" || { cat "$folder/said" >&2 && exit 1; }; }
"$folder/whole" >"$folder/said" 2>&1 || { cat "$folder/said" >&2 && exit 1; }
learned
XDG_STATE_HOME=$folder/agents "$build/driver/hvd-elastic" --state-dir "$folder/state" -np 2 "$folder/whole" >"$folder/said" 2>&1 ||
  { cat "$folder/said" >&2 && exit 1; }
learned
echo "$blocks blocks of code, all of them compiled; the whole program on the page runs"
