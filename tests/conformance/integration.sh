#!/usr/bin/env bash
# Section 6.1: integration tests with real processes. integration.sh ELASTIC SCHOLAR [NAME...]
. "$(dirname "$0")/lib.sh"
conformance_begin "$@"

A=localhost
B=127.0.0.1

for how in raise kill; do
  scenario 6.1 single_rank_failure "$how"
  hosts_from 0 $A:2 $B:2
  options -np 4 --min-np 2 --max-np 4 "${reference_blacklist[@]}"
  exits 1.0 $how 0
  expects "4 $A 0 1" "2 $B 2 2" "2 $B 2 2"
  play
done

conformance_end
