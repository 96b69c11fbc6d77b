#!/usr/bin/env bash
# Names in a shared output folder that another user has planted, and a worker that floods its output.
# The harm: output is appended to the victim's own files, a pipe without a reader stops all output and
# keeps the driver, files are writable for all, a disk fills.
#
#     output_files.sh ELASTIC TRAINER
. "$(dirname "$0")/../shell/lib.sh"
test_begin "$@"
flood=$((8 << 20))
[ "${ATTACK:-}" != large ] || flood=$((2 << 30))

# Workers 1 to 4 are the first ones of the slots 0 to 3.
mkdir -p prints/127.0.0.1/{0,1,2} elsewhere
chmod 0777 prints
echo mine >bashrc
ln -s "$folder/bashrc" prints/127.0.0.1/0/1.out
mkfifo prints/127.0.0.1/1/2.out
ln "$folder/bashrc" prints/127.0.0.1/2/3.out
ln -s "$folder/elsewhere" prints/127.0.0.1/3
umask 0
start -np 5 -H 127.0.0.1:5 --output-filename prints sh -c "echo text of \$HVD_SLOT; exec $trainer --steps 5"
finish 0
umask 022
[ "$(cat bashrc)" = mine ] || die "bashrc: $(cat bashrc)"
[ -z "$(ls elsewhere)" ] || die "elsewhere: $(ls elsewhere)"
for slot in 0 1 2 3 4; do
  grep -q "127.0.0.1:$slot\] text of $slot\$" "$out" || die "the output of slot $slot is not shown"
done
for name in 127.0.0.1/0/1.out 127.0.0.1/1/2.out 127.0.0.1/2/3.out 127.0.0.1/3; do
  [ "$(grep -c "prints/$name.*; this output of the worker is printed, and kept in no file" "$err")" = 1 ] ||
    die "not said once: prints/$name is refused"
done
[ "$(cat prints/127.0.0.1/4/5.out)" = 'text of 4' ] || die 'the file of slot 4 lacks its output'
open=$(find prints -mindepth 1 -newer bashrc \( -type f -o -type d \) -perm /077 ! -path prints/127.0.0.1 \
  ! -path 'prints/127.0.0.1/[0-3]*')
[ -z "$open" ] || die "made for all by a umask of 0: $open"

if [ "$(id -u)" = 0 ]; then
  new_job
  mkdir -p shared/127.0.0.1
  chown 12345 shared/127.0.0.1
  start -np 1 -H 127.0.0.1:1 --output-filename shared "$trainer" --steps 5 --print 80
  finish 0
  [ -z "$(ls shared/127.0.0.1)" ] || die 'output in a folder of another user'
  grep -q 'shared/127.0.0.1: belongs to user 12345' "$err" || die "no word of the folder's owner"
else
  say_line 'not tried: a folder of another user, which only root can make'
fi

# a worker that floods
new_job
start -np 1 -H 127.0.0.1:1 --output-filename flood --output-limit 1M \
  sh -c "yes 'a line of the flood' | head -c $flood; exec $trainer --steps 5" >/dev/null
finish 0
bytes=$(cat flood/127.0.0.1/0/* | wc -c)
say_line "$flood bytes printed, $bytes on disk"
if [ "$bytes" -gt $((1 << 20)) ] || [ "$bytes" -lt $((1 << 17)) ]; then die "$bytes bytes on disk"; fi
[ "$(grep -c 'share of --output-limit (256 KiB)' "$err")" = 1 ] || die 'the limit is not said once'
