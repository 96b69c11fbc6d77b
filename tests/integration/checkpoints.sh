#!/usr/bin/env bash
# hvd-elastic checkpoints: what it says of a directory of checkpoints, and what it changes there.
#
#     checkpoints.sh ELASTIC WRITER
# shellcheck source=tests/shell/tool.sh
. "$(dirname "$0")/../shell/tool.sh"
export HOME=$folder

fail() {
  echo "$*"
  exit 1
}

"$2" dir 1 2 3
mkdir dir/commit-9.9
expect 0 out '1.3                         2        5         1230' checkpoints dir
expect 0 out 'commit-9.9: the checkpoint is not complete: the file COMPLETE is missing' checkpoints dir
expect 0 out 'complete, verified' checkpoints dir verify
expect 0 out '"folder":"commit-1.2","round":1,"commit":2,"complete":true,"text":"","job":"job \"1\"","ranks":2,"entries":5' \
  checkpoints dir --json
expect 4 err 'dir: 1 of the checkpoints cannot be used; the list above says why' checkpoints dir/commit-9.9

# A bit turns: the list does not read so far, verify does; export takes nothing that is broken.
printf 'x' | dd of=dir/commit-1.3/replicated-0001-of-0002.t1a1.safetensors bs=1 seek=1100000 conv=notrunc 2>/dev/null
expect 0 out 'complete' checkpoints dir
expect 4 out 'replicated-0001-of-0002.t1a1.safetensors: chunk 1 has a wrong checksum' checkpoints dir verify
expect 4 err 'chunk 1 has a wrong checksum; choose another checkpoint' checkpoints dir export copy
[ ! -e copy/commit-1.3/COMPLETE ] || fail "a broken checkpoint was exported"
expect 0 out 'exported to copy/commit-1.2' checkpoints dir/commit-1.2 export copy
expect 0 out 'complete, verified' checkpoints copy/commit-1.2/ verify

expect 0 out 'dir/commit-1.1: removed, because newer checkpoints are kept' checkpoints dir prune 2
[ -e dir/commit-1.2 ] || fail "prune has removed commit-1.2"
[ ! -e dir/commit-1.1 ] || fail "prune has left commit-1.1"
expect 0 out '0 removed, 2 complete checkpoints stay' checkpoints dir prune 2

expect 1 err 'no/where: cannot open the directory: No such file or directory; create the directory' checkpoints no/where
expect 1 err 'no-such-job' checkpoints no-such-job
expect 2 err 'the job or directory is missing' checkpoints
expect 2 err 'none of verify, export DEST and prune N' checkpoints dir other
expect 2 err 'one word is missing' checkpoints dir prune
expect 2 err 'checkpoints prune: ' checkpoints dir prune 0

# A job removes a checkpoint, COMPLETE first, while the list looks at it: it is left out, and is no failure. A list that
# cannot be read is a failure of prune.
"$2" raced/objects 1 2
cat >raced/store <<END
#!/bin/sh
case "\$*" in
  *list*) [ ! -e raced/broken ] || { echo 'no list today' >&2; exit 1; } ;;
  *get*commit-1.2/*.json*) rm raced/objects/commit-1.2/* ;;
esac
exec $(dirname "$(realpath "$0")")/../shell/store.sh raced/objects "\$@"
END
chmod +x raced/store
expect 0 out '1.1                         2' checkpoints "command://$PWD/raced/store"
! grep -qF '1.2 ' out || fail "a checkpoint is listed that was removed meanwhile: $(cat out)"
touch raced/broken
expect 4 err 'no list today' checkpoints "command://$PWD/raced/store" prune 1
rm raced/broken

# Of a job: its directory is among the options that it was started with.
mkdir -p job
printf 'hvd-elastic command 1\0%s\0np = 2\ncheckpoint-dir = dir\n\0001\0true\0' "$PWD" >job/command
chmod 700 job && chmod 600 job/command
expect 0 out '1.3                         2' checkpoints any --state-dir "$PWD/job"
