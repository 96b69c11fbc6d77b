#!/usr/bin/env bash
# Runs a program in a network that has a loopback and nothing else, so that the program neither dials nor hears another
# test. Started by ctest (HVD_OWN_NETWORK in tests/CMakeLists.txt). OWN_NETWORK tells the program that it is so; where no
# network namespace can be made, the program runs without it.
#
#     own_network.sh PROGRAM WORDS...
if command -v ip >/dev/null && unshare -n ip link set lo up 2>/dev/null; then
  # shellcheck disable=SC2016 # expanded by the shell in there
  OWN_NETWORK=1 exec unshare -n sh -c 'ip link set lo up && exec "$@"' sh "$@"
fi
exec "$@"
