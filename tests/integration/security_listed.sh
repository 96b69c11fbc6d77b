#!/usr/bin/env bash
# Each test that SECURITY.md names is there, and the threat model names one for each kind of attacker.
#
#     security_listed.sh BUILD-FOLDER PAGE
set -euo pipefail
page=$2
there=$(ctest --test-dir "$1" -N | sed -nE 's/^ *Test +#[0-9]+: ([a-z]+\.[a-z0-9_]+).*/\1/p' | sort -u)
# shellcheck disable=SC2016 # no expressions
named=$(grep -oE '`(unit|attack|fuzz|crash|integration|story)\.[a-z0-9_]+`' "$page" | tr -d '\140' | sort -u)
if [ -z "$there" ] || [ -z "$named" ]; then echo 'FAILED: nothing was compared' && exit 1; fi
missing=$(comm -13 <(echo "$there") <(echo "$named"))
[ -z "$missing" ] || { echo "FAILED: $page names tests that are not there: ${missing//$'\n'/ }" && exit 1; }
attackers=$(sed -n '/^## Threat model/,/^## /p' "$page" | grep '^| \*\*')
untested=$(grep -vcE '`(unit|attack)\.' <<<"$attackers" || true)
rows=$(wc -l <<<"$attackers")
if [ "$rows" -lt 8 ] || [ "$untested" != 0 ]; then echo "FAILED: $rows attackers, $untested without a test" && exit 1; fi
echo "$(wc -l <<<"$named") tests, all of them there; $rows kinds of attackers"
