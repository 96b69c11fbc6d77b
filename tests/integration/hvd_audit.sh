#!/usr/bin/env bash
# hvd-audit: sample logs as jobs leave them, and with each kind of fault.
#
#     hvd_audit.sh PROGRAM
# shellcheck source=tests/shell/tool.sh
. "$(dirname "$0")/../shell/tool.sh"

# Two epochs of six samples in batches of four, by two ranks; rank 1 dies in the first step of round 1
# after the commit at 4, and in round 2 another worker has its rank.
good() {
  rm -rf logs && mkdir logs
  cat >logs/1.samples <<'END'
batch a 0 0 4 1 0 2 6: 0 5
batch a 0 4 2 1 0 2 6: 1
batch a 0 4 2 2 0 2 6: 1
batch a 1 0 4 2 0 2 6: 5 4
batch a 1 4 2 2 0 2 6: 1
END
  cat >logs/2.samples <<'END'
batch a 0 0 4 1 1 2 6: 2 3
END
  cat >logs/3.samples <<'END'
batch a 0 4 2 2 1 2 6: 4
batch a 1 0 4 2 1 2 6: 3 2
batch a 1 4 2 2 1 2 6: 0
END
}

good
expect 0 out '2 epochs finished, each sample of them used exactly once; 1 samples were computed twice' logs
expect 0 out '"ok":true' --json --epochs 2 logs
expect 1 out 'and --epochs demands 3' --epochs 3 logs

# a worker that died while it wrote; another sampler beside it; several folders; a rank with no share
printf 'batch a 2 0 4 2 1 2 6: 3' >>logs/3.samples
printf 'batch b%%20c 0 0 1 2 %d 2 3:%s\n' 0 '' 1 ' 2' >>logs/3.samples
expect 1 err '3.samples: line 4: ' logs
good
printf 'batch b%%20c 0 0 1 2 %d 2 3:%s\n' 0 '' 1 ' 2' >>logs/3.samples
printf 'batch a 2 0 4 2 1 2 6: 3' >>logs/3.samples
expect 0 out 'not finished: 1 of 3 used' logs
expect 0 out 'b%20c: 3 samples' logs
mkdir -p other && mv logs/2.samples other
expect 0 out '2 epochs finished' logs other
expect 1 out 'rank 1 of round 1 has no line for the batch at 0' logs

# a whole round is restored by the program's own wish, and repeats a batch
good
echo 'batch a 1 4 2 2 0 2 6: 1' >>logs/1.samples
echo 'batch a 1 4 2 2 1 2 6: 0' >>logs/3.samples
expect 0 out '3 samples were computed twice' logs # two here, one as above

# The job is lost as a whole, in round 2 of epoch 1, and another one begins with a checkpoint of epoch 1 at 4: it has the
# same numbers of rounds and workers. The logs of both are right one after the other, and wrong as those of one job.
good
rm -rf next && mkdir next
sed -i '/^batch a 1 4 /d' logs/*
printf 'batch a %d %d %d 2 0 2 6: %s\n' 1 4 2 0 2 0 4 '0 1' >>logs/1.samples
printf 'batch a %d %d %d 2 1 2 6: %s\n' 1 4 2 1 2 0 4 '2 3' >>logs/3.samples
echo 'batch a 1 4 2 2 0 1 6: 1 0' >next/1.samples
echo 'batch a 2 0 6 2 0 1 6: 5 4 3 2 1 0' >>next/1.samples
expect 0 out '3 epochs finished, each sample of them used exactly once; 7 samples were computed twice' --successors logs next
expect 1 out 'WRONG' logs next
sed -i 's/: 1 0$/: 1 2/' next/1.samples
expect 1 out 'sample 2 was used twice' --successors logs next
sed -i 's/ 4 2 2 0 1 6: 1 2$/ 5 1 2 0 1 6: 1/' next/1.samples
expect 1 out 'round 2 uses places from 5 on, which are used up to 5' --successors logs next

# A tab in a name is escaped in JSON.
good && sed -i "s/^batch a /batch a$(printf '\t')b /" logs/*
expect 0 out '"name":"a\tb"' --json logs

# one sample twice and another never; too few; too many; a gap; an end that is missing; an epoch too
good && sed -i 's/: 2 3/: 2 0/' logs/2.samples
expect 1 out 'sample 0 was used twice' logs
expect 1 out '1 samples were not used; the first is 3' logs
expect 1 out '"missing":1,"twice":1' --json logs
good && sed -i 's/: 2 3/: 2/' logs/2.samples
expect 1 out 'the batch at 0 of round 1 has 3 samples, not 4' logs
good && sed -i '/ 0 4 2 1 /d; / 0 4 2 2 /s/ 4 2 / 5 1 /; s/: 4$/:/' logs/[13].samples
expect 1 out 'no worker used the places 4 to 4; round 2 continues after them' logs
good && sed -i '/ 0 4 2 /d' logs/*
expect 1 out 'no worker used the places from 4 on, and the next epoch was begun' logs
good && sed -i '/ 0 [04] [24] /d' logs/*
expect 1 out 'this epoch was begun, but epoch 0 before it was not' logs
good && sed -i 's/ 0 0 4 1 / 0 0 5 1 /; s/: 2 3/: 2 3 4/' logs/[12].samples
expect 1 out 'round 2 uses places from 4 on, which are used up to 4' logs
good && cp logs/2.samples logs/4.samples
expect 1 out 'two workers were the same rank of round 1' logs

# what is no sample log
bad() {
  good
  printf '%s\n' "$1" >>logs/2.samples
  expect 1 err "2.samples: line 2: $2" logs
}
bad 'rubbish' 'the line has no ":"'
bad '' 'the line has no ":"'
bad 'botch a 0 0 4 1 0 2 6: 0' 'the line does not begin with "batch"'
bad 'batch a 0 0 4 1 0 2: 0' 'the number of samples in an epoch is missing'
bad 'batch a 0 0 4 1 0 2 6 7: 0' 'there are too many words'
bad 'batch a 0 0 4 1 2 2 6: 0' 'the rank is not below the size'
bad 'batch a 0 4 4 1 0 2 6: 0' 'the batch goes past the end'
bad 'batch a 0 0 4 1 0 2 6: 6' '"6": a sample must be between 0 and 5'
bad 'batch a 0 0 1 1 0 2 6: 0 1' 'the line has more samples than the batch'
bad 'batch a 0 0 4 1 0 2 6: 0  1' 'a sample is missing'
bad 'batch a 0 0 4 1 0 2 7: 0' 'the sampler "a" has 7 samples in this line, but 6 in an earlier line'
bad 'batch a 0 -1 4 1 0 2 6: 0' '"-1": the place in the epoch'
good && head -c 100000 /dev/urandom >>logs/2.samples
expect 1 err '2.samples: line 2: ' logs
good && head -c 17000000 /dev/zero >logs/2.samples
expect 4 err '2.samples: line 1: the line is too long for a sample log, or no memory is left; leave this file out' logs

mkdir empty
expect 1 err 'empty: the folder has no file *.samples' empty
expect 1 err 'nowhere: cannot open' nowhere
expect 2 err 'no folder is given' --json
expect 2 err 'Try ' --what logs
expect 0 out 'usage: hvd-audit' --help
good
code=0
"$program" logs >/dev/full 2>err || code=$?
[ $code = 4 ] || { echo "a full standard output goes unnoticed: exit $code" && exit 1; }
echo "hvd-audit does as its page says"
