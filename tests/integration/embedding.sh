#!/usr/bin/env bash
# The code in docs/embedding.md is that of the examples, word for word, and they compile.
#
#     embedding.sh SOURCE-FOLDER C-COMPILER
set -euo pipefail
cd "$1"
cc=$2
page=docs/embedding.md
examples=(examples/plain.c examples/elastic.c examples/overlap.c)

for example in "${examples[@]}"; do
  "$cc" -std=c11 -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror -Iinclude -fsyntax-only "$example"
done

code=$(cat "${examples[@]}")
blocks=0 line=0 first=0 block=
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
    first=0
  elif [ $first != 0 ]; then
    block+=$text$'\n'
  fi
done <"$page"
[ $blocks -ge 5 ] || { echo "$page: only $blocks blocks of code" >&2 && exit 1; }
echo "$blocks blocks of code, all of them compiled"
