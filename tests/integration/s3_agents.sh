#!/usr/bin/env bash
# Agents whose login has no AWS_*, as one that ssh starts, write checkpoints to S3 with the driver's variables, which
# stand on no command line and in no log. Agents that have credentials of their own use these.
#
#     s3_agents.sh ELASTIC TRAINER
. "$(dirname "$0")/../shell/lib.sh"
. "$(dirname "$0")/../shell/train.sh"
. "$(dirname "$0")/../shell/s3.sh"
test_begin "$@"
s3_start

# A stand-in for ssh starts the agent with the environment of another login.
mkdir "$folder/far"
cp "$elastic" "$folder/far/hvd-elastic"
login() { # VARIABLES OF THE LOGIN...
  cat >"$folder/far/hvd-agent" <<END
#!/bin/sh
tr '\\0' '\\n' </proc/\$\$/cmdline >>"$folder/words"
exec env -u AWS_ENDPOINT_URL -u AWS_ACCESS_KEY_ID -u AWS_SECRET_ACCESS_KEY -u AWS_EC2_METADATA_DISABLED $* \\
  "$(realpath "${elastic%/*}/../agent/hvd-agent")" "\$@"
END
  chmod +x "$folder/far/hvd-agent"
}
finished() {
  ask stop --no-checkpoint || die "stop: exit code $?"
  finish 143
}

begin() {
  elastic=$folder/far/hvd-elastic start -np 2 -H 127.0.0.1:1,127.0.0.2:1 --checkpoint-dir "s3://kept/$job" \
    --checkpoint-interval 200ms "$trainer" --steps 100000 --step-ms 5 --say "$say" --slow-until "$go"
}

login
begin
await "$err" 'checkpoint .* is complete' 2
for pid in $(marked); do tr '\0' '\n' <"/proc/$pid/cmdline" >>"$folder/words" 2>/dev/null; done
[ -s "$folder/words" ] || die 'no command line was seen'
finished
if grep -rl 'sEcret/+123' "$folder/words" "$err" "$out" "$HOME" --include='*.log' --include=words --include="${err##*/}"; then
  die 'the secret is on a command line, or in a log'
fi

login AWS_ACCESS_KEY_ID=AKOTHER AWS_SECRET_ACCESS_KEY=own
new_job
begin
await "$err" 'no checkpoint could be made: .*InvalidAccessKeyId'
finished
