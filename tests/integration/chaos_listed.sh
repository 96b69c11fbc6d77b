#!/usr/bin/env bash
# docs/chaos.md names each fault that there is, and no other; those that must cost nothing with a star.
#
#     chaos_listed.sh CHAOS PAGE
set -euo pipefail
chaos=$1
page=$2
listed=$("$chaos" --list | sed -nE 's/^([a-z0-9-]+) .*; must cost nothing$/\1*/p; t; s/^([a-z0-9-]+) .*/\1/p' | sort)
# shellcheck disable=SC2016 # no expressions
named=$(sed -n '/^## The faults/,/^## Networks/p' "$page" | grep '^|' | cut -d '|' -f 3 |
  grep -oE '`[a-z0-9-]+`\*?' | tr -d '\140' | sort)
[ -n "$listed" ] || { echo "FAILED: $chaos --list names nothing" && exit 1; }
diff <(echo "$listed") <(echo "$named") || { echo "FAILED: < only in --list, > only in $page" && exit 1; }
echo "$(wc -l <<<"$listed") faults, all of them in $page"
