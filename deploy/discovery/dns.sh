#!/bin/sh
# All addresses of a DNS name as hosts, for --host-discovery-script: a name with several A or AAAA records, as a headless
# Service of Kubernetes has, or Consul's NAME.service.consul. A name that does not exist, or a name server that does not
# answer, is a failure: exit code 1 and a line that says so, and the driver keeps the last list. It needs getent (libc)
# and timeout (coreutils); the answer comes as the machine looks up names, /etc/hosts and nsswitch.conf included.
#
#     dns.sh NAME [SLOTS]
#     dns.sh agents.train.svc.cluster.local 8
#
# The driver gives a script no words: DISCOVER_NAME and DISCOVER_SLOTS name the same. DISCOVER_FAMILY=4 or 6 takes the
# addresses of IPv4 or IPv6 alone, DISCOVER_TIMEOUT is the limit in seconds (20).
set -u
name=${1:-${DISCOVER_NAME:-}} slots=${2:-${DISCOVER_SLOTS:-}} family=${DISCOVER_FAMILY:-} limit=${DISCOVER_TIMEOUT:-20}

fail() {
  printf 'dns.sh: %s\n' "$*" >&2
  exit 1
}

[ -n "$name" ] || fail 'no name is given; give it as the first word, or set DISCOVER_NAME'
case $name in -*) fail "$name: a name cannot begin with a dash; give a DNS name" ;; esac
case $slots in *[!0-9]*) fail "$slots: the slots must be a number; give a number as the second word" ;; esac
case $limit in '' | *[!0-9]* | 0*) fail "DISCOVER_TIMEOUT: $limit: must be a number of seconds; give one from 1" ;; esac
case $family in '' | 4 | 6) ;; *) fail "DISCOVER_FAMILY: $family: must be 4 or 6; set one of the two" ;; esac
command -v getent >/dev/null || fail 'getent: there is no such program in PATH; install it (Debian: libc-bin)'

found=$(timeout -k 1 "$limit" getent "ahosts${family:+v$family}" "$name" 2>&1)
code=$?
case $code in
  0) ;;
  2) fail "$name: getent finds no address; check the name, and the name servers in /etc/resolv.conf" ;;
  124 | 137) fail "$name: no answer within ${limit}s; check the name servers, or raise DISCOVER_TIMEOUT" ;;
  *) fail "$name: getent: $found (exit code $code); run getent ahosts $name by hand" ;;
esac
# getent prints an address once for each kind of socket; an address of IPv4 in IPv6 is that of IPv4.
printf '%s\n' "$found" | awk -v slots="$slots" '
  NF && $2 == "STREAM" {
    sub(/^::ffff:/, "", $1)
    print ($1 ~ /:/ ? "[" $1 "]" : $1) (slots == "" ? "" : ":" slots)
  }' | LC_ALL=C sort -u
