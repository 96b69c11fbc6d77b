#!/usr/bin/env bash
# hvd-hosts as a person uses it: what it prints, where, and with which exit code.
#
#     hvd_hosts.sh PROGRAM
set -euo pipefail
program=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
unset "${!HVD_@}"

# expect CODE STREAM TEXT ARGS...: it ends with CODE, and STREAM (out, err) holds TEXT.
expect() {
  local code=0 want=$1 stream=$2 text=$3
  shift 3
  "$program" "$@" >out 2>err <&0 || code=$?
  if [ "$code" != "$want" ] || ! grep -qF -- "$text" "$stream"; then
    echo "hvd-hosts $*: exit $code, not $want, or no '$text' in its $stream:"
    cat out err
    exit 1
  fi
}

printf 'a:2\nb:1\n' >one
printf 'c:3\nb:4\n' >two

expect 0 out 'ranks 0-1' one
expect 0 out '2 hosts, 3 slots, 3 can be used' - <one
expect 0 out 'two: -a b:1->4 +c:3' one two
expect 0 out '1 host, 7 slots' --slots-per-host 7 -H x
HVD_SLOTS_PER_HOST=5 expect 0 out '1 host, 5 slots' -H x
printf 'slots-per-host = 6\n' >config
expect 0 out '1 host, 6 slots' --config-file config -H x
HVD_SLOTS_PER_HOST=5 expect 0 out 'slots-per-host = 5 # HVD_SLOTS_PER_HOST' \
  --config-file config --print-config
expect 0 out 'slots-per-host = 6 # config:1' --config-file config --print-config
expect 0 out 'usage: hvd-hosts' --help
expect 0 out 'hvd-hosts ' --version
expect 0 out 'slots-per-host' --list-options

printf 'a b:2\n' >bad
expect 1 err 'bad: line 1: "a b:2"' bad
expect 1 err 'nowhere: cannot open' nowhere
head -c 100000 /dev/urandom >binary
expect 1 err 'binary: line' binary
head -c 2000000 /dev/zero | tr '\0' x >endless
expect 1 err 'endless: ' endless
expect 1 err '--hosts: entry 2' -H a:2,,b
expect 2 err 'did you mean --slots-per-host?' --slots-per-hots 3
expect 2 err 'name a file' --slots-per-host 3
expect 2 err 'need --blacklist' --history one
expect 2 err 'one or the other' -H a one
printf 'slot-per-host = 6\n' >config
expect 2 err 'config:1: ' --config-file config one

expect 4 err 'no such blacklist' --blacklist list one
expect 0 out 'a:1: cooling for' --blacklist list --fail a:1 --reason 'exit code 1'
expect 0 out 'slot 1: cooling for' --blacklist list one
expect 0 out 'exit code 1' --blacklist list --history one
expect 0 out '2 hosts, 3 slots, 2 can be used' --blacklist list one
expect 0 out 'not used' --blacklist list --fail b one
expect 0 out '3 can be used' --blacklist list --clear a:1 --clear b one
expect 0 out 'x: ok' --blacklist list --clear x one

# a host is cleared with its slots; a repeated failure is one more line of the history
expect 0 out 'host cooling' --blacklist list --fail a --fail a:0 --fail '[::1]:3' --fail '[::1]'
expect 0 out '[::1]:3: ' --blacklist list --history
expect 0 out 'a: ok' --blacklist list --clear a
expect 0 out '3 can be used' --blacklist list one
expect 0 out 'something is held against 2 hosts or slots' --blacklist list
expect 0 out 'ago: a:0' --blacklist list --history one
expect 0 out 'barred' --blacklist list --blacklist-forever --fail a one

# nothing is recorded when anything in the command is wrong
for bad in 'c:x' 'c:1024' '::1' '[::1' 'c slots=2' '-c'; do
  expect 2 err '--fail "' --blacklist list --fail=d --fail="$bad" one
done
expect 2 err 'must not be empty' --blacklist list --fail=d --fail= one
expect 1 err 'cannot open' --blacklist list --fail=d nowhere
expect 0 out 'held against' --blacklist list
if grep -q '^d:' out; then
  echo "a failure was recorded by a command that was wrong:"
  cat out
  exit 1
fi

expect 2 err 'options go before the files' one --slots-per-host 2
expect 2 err 'only once' - -
expect 0 err 'a list without hosts' one /dev/null
HVD_SLOTS_PER_HOST=zz expect 0 out 'usage: ' --help
HVD_SLOTS_PER_HOST=zz expect 2 err 'HVD_SLOTS_PER_HOST' one

expect 4 err 'no-such-folder' --blacklist no-such-folder/list --fail a
: >empty
expect 4 err 'it is empty' --blacklist empty --fail a
[ ! -s empty ] || { echo "an empty file was written to"; exit 1; }
expect 4 err 'not a file of hvd-elastic' --blacklist one --fail a
ln -s nowhere link
expect 4 err 'symbolic link' --blacklist link --fail a
printf precious >new.new
expect 0 out 'a: cooling' --blacklist new --fail a
[ "$(cat new.new)" = precious ] || { echo "a file of the user's is gone"; exit 1; }

code=0
"$program" one >/dev/full 2>err || code=$?
if [ $code != 4 ] || ! grep -q 'cannot write to standard output' err; then
  echo "a full standard output goes unnoticed: exit $code"
  exit 1
fi
echo "hvd-hosts does as its page says"
