#!/usr/bin/env bash
# hvd-hosts as an operator uses it: what it prints, on which stream, and its exit codes.
#
#     hvd_hosts.sh PROGRAM
# shellcheck source=tests/shell/tool.sh
. "$(dirname "$0")/../shell/tool.sh"

printf 'a:2\nb:1\n' >one
printf 'c:3\nb:4\n' >two

expect 0 out 'ranks 0-1' one
expect 0 out '2 hosts, 3 slots' - <one
expect 0 out 'two: -a b:1->4 +c:3' one two
printf 'a slots=2 max_slots=4\na\n' >three
expect 0 out '1 host, 3 slots' --hostfile three
expect 1 err 'line 1 gives this host 2 slots' three
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
expect 2 err 'there are no hosts; name a file' --slots-per-host 2
expect 2 err 'give only one of the two' -H a one
printf 'slot-per-host = 6\n' >config
expect 2 err 'config:1: ' --config-file config one

expect 2 err 'options go before the files' one --slots-per-host 2
expect 2 err 'only once' - -
expect 0 err 'a list without hosts' one /dev/null
HVD_SLOTS_PER_HOST=zz expect 0 out 'usage: ' --help
HVD_SLOTS_PER_HOST=zz expect 2 err 'HVD_SLOTS_PER_HOST' one

code=0
"$program" one >/dev/full 2>err || code=$?
if [ $code != 4 ] || ! grep -q 'cannot write to standard output' err; then
  echo "a full standard output goes unnoticed: exit $code"
  exit 1
fi
echo "hvd-hosts does as its page says"
