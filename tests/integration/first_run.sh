#!/usr/bin/env bash
# The first steps of a new user: a shell command on two hosts of one machine, a static run, a wrapper,
# hosts that come and go, a worker that dies.
#
#     first_run.sh ELASTIC TRAINER
. "$(dirname "$0")/../shell/lib.sh"
test_begin "$@"

# Each of the words is a line of the file, as a whole.
has_lines() {
  local file=$1 line
  shift
  for line in "$@"; do
    grep -qxF -- "$line" "$file" || die "no line '$line' in $(basename "$file")"
  done
}

cat >hosts.sh <<'END'
#!/bin/sh
cat hosts.now
END
chmod +x hosts.sh
list_hosts() { # HOST...: no script reads half of it
  printf '%s\n' "$@" >hosts.new
  mv hosts.new hosts.now
}
list_hosts 127.0.0.1:2 127.0.0.2:2

# shellcheck disable=SC2016 # the worker's shell is to see it
start -np 4 --min-np 2 --host-discovery-script ./hosts.sh sh -c 'echo $HVD_RANK; sleep 2'
finish 0
has_lines "$out" '[0 127.0.0.1:0] 0' '[1 127.0.0.1:1] 1' '[2 127.0.0.2:0] 2' '[3 127.0.0.2:1] 3'

new_job
start -np 4 -H localhost:4 "$trainer" --steps 20 --say "$say"
await_round 4
finish 0

new_job
start -np 2 -H 127.0.0.1:2 --output-filename prints sh -c "true; $trainer --steps 5 --print 160"
finish 0
[ "$(cat prints/127.0.0.1/0/*.out | wc -c)" = 800 ] || die "--output-filename: not what was printed"

# what a script may read
new_job
start -np 2 -H 127.0.0.1:1,127.0.0.2:1 --env SECRET=x --cpu-operations tcp \
  --fixed-order --fusion-threshold-mb 0 --commit-to host --torch-env sh -c \
  'env | grep -E "^(HVD|HOROVOD)_|^SECRET=|^PYTHONUNBUFFERED="; true'
finish 0
for name in HVD_AGENT HVD_INCARNATION HVD_HOST=127.0.0.2 HVD_SLOT=0 HVD_RANK=1 HVD_SIZE=2 \
  HVD_LOCAL_RANK=0 HVD_LOCAL_SIZE=1 HVD_CROSS_RANK=1 HVD_CROSS_SIZE=2 \
  HOROVOD_HOSTNAME=127.0.0.2 HOROVOD_RANK=1 HOROVOD_SIZE=2 HOROVOD_LOCAL_RANK=0 \
  HOROVOD_LOCAL_SIZE=1 HOROVOD_CROSS_RANK=1 HOROVOD_CROSS_SIZE=2 HOROVOD_ELASTIC=1 \
  PYTHONUNBUFFERED=1 SECRET=x "HVD_JOB=$job" HVD_CPU_OPERATIONS=tcp HVD_FIXED_ORDER=1 \
  HVD_COMMIT_TO=host HVD_TORCH_ENV=1 \
  HVD_FUSION_THRESHOLD_MB=0; do
  grep -qF "[1 127.0.0.2:0] $name" "$out" || die "the worker's environment lacks $name"
done

# a host comes, a host goes, a worker dies
new_job
list_hosts 127.0.0.1:2
start -np 2 --min-np 1 --max-np unlimited --host-discovery-script ./hosts.sh "$trainer" --say "$say"
await_round 2
list_hosts 127.0.0.1:2 127.0.0.2:2
await_round 4
survivors=$(workers HVD_HOST=127.0.0.2)
list_hosts 127.0.0.2:2
await_round 2
[ "$(workers HVD_HOST=127.0.0.2)" = "$survivors" ] || die "the survivors were started anew"
for pid in $survivors; do
  kill -KILL "$pid"
  break
done
await_round 2
ask stop || die "stop: exit code $?"
finish 143

# a failure is told: which worker, which code
new_job
start -np 2 -H 127.0.0.1:2 sh -c 'exit 7'
finish 1
grep -q 'hvd-elastic: job .*127\.0\.0\.1:[01].*7' "$err" ||
  die "the summary does not name the worker and its code"
grep -qE "^hvd-elastic: job $job: .* \(after [^ ]+, exit code 1\)\$" "$err" || die "the last line has no time and code: $(tail -n 1 "$err")"
