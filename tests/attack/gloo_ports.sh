#!/usr/bin/env bash
# Gloo's ports ask for no proof. The harm that is looked for: on the loopback, where Gloo is allowed, a stranger who comes
# first makes a sum wrong, or a member wait for ever (gloo_ports.c). Off the loopback, Gloo is used without the word of
# the operator (--data-security none).
#
#     gloo_ports.sh ELASTIC PLAIN_TRAINER GLOO_PORTS
. "$(dirname "$0")/../shell/lib.sh"
stranger=$(realpath "$3")
if [ -z "${GLOO_APART:-}" ]; then
  "$stranger" 2>/dev/null || exit
  [ "$(id -u)" = 0 ] || skip 'the rest: only root can make a network of its own'
  command -v ip >/dev/null || skip 'the rest: there is no ip (package iproute2)'
  unshare -n true 2>/dev/null || skip 'the rest: no network namespace can be made here'
  GLOO_APART=1 exec unshare -n "$script" "$@"
fi
test_begin "$1" "$2"
ip link set lo up
ip addr add 10.79.9.1/32 dev lo || skip 'the rest: no address can be given here'

# try WORDS...: a job of two workers over Gloo, at an address that is not of the loopback.
try() {
  new_job
  start -np 2 -H 10.79.9.1:2 --cpu-operations gloo --blacklist-forever "$@" "$trainer"
}
for words in '' '--data-security auto' '--data-security authenticated' '--data-security encrypted'; do
  # shellcheck disable=SC2086 # words
  try $words
  await_driver
  [ "$code" != 0 ] || die "Gloo is used with '$words'"
  grep -qiE 'gloo sends (numbers )?in clear' "$out" "$err" || die "'$words': it does not say why"
done
try --data-security none
finish 0
say_line 'off the loopback Gloo is refused, unless --data-security none allows it'
