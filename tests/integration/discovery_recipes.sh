#!/usr/bin/env bash
# The recipes of deploy/discovery for AWS, Google Cloud, Azure and Consul, with tools that are played: which machines each one
# lists of a recorded answer, a machine that goes, an empty group, and what a recipe says when its tool is missing, fails,
# hangs or answers garbage. hvd-hosts reads each list, and a real driver follows one: it keeps its hosts while the tool fails.
#
#     discovery_recipes.sh ELASTIC TRAINER HOSTS
. "$(dirname "$0")/../shell/lib.sh"
tree=$(realpath "$(dirname "$0")/../..")
hosts=$(realpath "$3")
test_begin "$1" "$2"
recipes=$tree/deploy/discovery
mkdir tools answers
for name in aws gcloud az curl; do ln -s "$tree/tests/recipes/tool" "tools/$name"; done
# a python3 of PATH may be a script that puts other folders before those of PATH
ln -s "$(python3 -c 'import sys; print(sys.executable)')" tools/python3
cp "$tree"/tests/recipes/answers/*.json answers
export ANSWERS=$folder/answers ASKED=$folder/asked PATH=$folder/tools:$PATH
unset "${!DISCOVER_@}" CONSUL_HTTP_ADDR CONSUL_HTTP_TOKEN

# lists WANT RECIPE WORDS...: exactly these hosts, without a word on standard error; hvd-hosts reads them.
lists() {
  local want=$1 recipe=$2
  shift 2
  : >"$ASKED"
  BODY_TEST=$folder timeout "$PATIENCE" "$recipes/$recipe" "$@" >listed 2>said || die "$recipe $*: exit code $?: $(cat said)"
  [ ! -s said ] || die "$recipe $*: $(cat said)"
  [ "$(paste -s -d ' ' listed)" = "$want" ] || die "$recipe $*: not '$want', but: $(cat listed)"
  "$hosts" --slots-per-host 3 - <listed >dry_run 2>&1 || die "$recipe $*: hvd-hosts says: $(cat dry_run)"
}

# fails TEXT RECIPE WORDS...: exit code 1, nothing on standard output, one line on standard error, with this text.
fails() {
  local text=$1 recipe=$2 code=0
  shift 2
  BODY_TEST=$folder timeout "$PATIENCE" env PATH="${TOOLS:-$PATH}" "$recipes/$recipe" "$@" >listed 2>said || code=$?
  if [ $code != 1 ] || [ -s listed ] || [ "$(wc -l <said)" != 1 ] || ! grep -qF -- "$text" said; then
    die "$recipe $*: exit code $code, not 1, or no '$text': $(cat said listed)"
  fi
}

aws=(aws.py --group train)
gcloud=(gcloud.py --group train --region europe-west4)
azure=(azure.py --group train --resource-group lab)
consul=(consul.py --service hvd-agent)

# ---- what is listed, and what not ---------------------------------------------------------------------

lists '127.0.0.1:8 127.0.0.2:8' "${aws[@]}" --region eu-central-1 --slots 8
grep -qx 'aws ec2 describe-instances --instance-ids i-0a1 i-0a2 i-0a6 --region eu-central-1 --output json' "$ASKED" ||
  die "aws was asked: $(cat "$ASKED")"
lists 'ip-127-0-0-1.eu-central-1.compute.internal ip-127-0-0-2.eu-central-1.compute.internal' "${aws[@]}" --address private-dns
grep -q ' 6 slots' dry_run || die "--slots-per-host of the driver does not count: $(cat dry_run)"
lists 'train-1f0s.europe-west4-a.c.lab-7.internal:4 train-2k9d.europe-west4-b.c.lab-7.internal:4' "${gcloud[@]}" --slots 4
lists 'train-1f0s train-2k9d' gcloud.py --group train --zone europe-west4-a --project lab-7 --address short
lists 'train000000 train000001' "${azure[@]}"
CONSUL_HTTP_TOKEN=secret-1 lists '10.1.0.1:2 [fd00::2]:2' "${consul[@]}" --slots 2
grep -qx 'header = "X-Consul-Token: secret-1"' "$ASKED" || die "curl was asked: $(cat "$ASKED")"
if grep '^curl.*secret' "$ASKED"; then die 'the token is on the command line of curl'; fi
DISCOVER_GROUP=train DISCOVER_SLOTS=5 lists '127.0.0.1:5 127.0.0.2:5' aws.py

# changes FILE SED: an answer from now on
changes() {
  sed -i "$2" "answers/$1.json"
  cmp -s "answers/$1.json" "$tree/tests/recipes/answers/$1.json" && die "$1: '$2' changes nothing"
}
again() { cp "$tree"/tests/recipes/answers/*.json answers; }

# ---- a machine goes -------------------------------------------------------------------------------------

changes aws-autoscaling '/i-0a1/s/InService/Terminating/'
changes gcloud '/train-1f0s/s/NONE/ABANDONING/'
changes az '/train_0/s,PowerState/running,PowerState/stopping,'
changes curl '/10.1.0.1/s/passing/critical/'
lists 'train-2k9d.europe-west4-b.c.lab-7.internal' "${gcloud[@]}"
lists 'train000001' "${azure[@]}"
lists '[fd00::2]' "${consul[@]}"
again
changes aws-ec2 '/i-0a1/s/running/stopping/' # EC2 knows it before the group does
lists '127.0.0.2' "${aws[@]}"

# ---- nothing runs: an empty list, and not a failure -------------------------------------------------------

changes aws-autoscaling 's/InService/Pending/'
changes gcloud 's/RUNNING/STOPPED/'
changes curl 's/passing/critical/'
echo '[]' >answers/az.json
lists '# aws.py: no machine runs' "${aws[@]}"
lists '# gcloud.py: no machine runs' "${gcloud[@]}"
lists '# azure.py: no machine runs' "${azure[@]}"
lists '# consul.py: no machine runs' "${consul[@]}"
grep -qF 'a list without hosts' dry_run || die "hvd-hosts says of an empty list: $(cat dry_run)"
echo '{"AutoScalingGroups": []}' >answers/aws-autoscaling.json
echo '[]' >answers/curl.json
fails 'there is no auto-scaling group train; check --group and --region' "${aws[@]}"
fails 'knows no service hvd-agent, or the token may not see it; check --service' "${consul[@]}"
again

# ---- the tool fails ---------------------------------------------------------------------------------------

FAULT='error 253 Unable to locate credentials. Configure them.' fails \
  'aws: Unable to locate credentials. Configure them; exit code 253; give this machine an instance profile' "${aws[@]}"
FAULT='error 1 ERROR: (gcloud.x) You do not currently have an active account selected.' fails \
  'gcloud auth login' "${gcloud[@]}"
FAULT="error 1 ERROR: The resource 'train' was not found" fails 'check --group, --zone, --region and --project' "${gcloud[@]}"
FAULT="error 1 ERROR: Please run 'az login' to setup account." fails 'az login --identity' "${azure[@]}"
FAULT='error 3 ERROR: (ResourceNotFound) none' fails 'exit code 3; check --group, --resource-group' "${azure[@]}"
FAULT='error 22 curl: (22) The requested URL returned error: 403' fails 'set CONSUL_HTTP_TOKEN' "${consul[@]}"
FAULT='error 7 curl: (7) Failed to connect' fails 'start the Consul agent, or set CONSUL_HTTP_ADDR' "${consul[@]}"
FAULT='error 9 a text that no recipe knows' fails 'a text that no recipe knows; exit code 9; run this by hand: aws autosc' "${aws[@]}"
for recipe in aws gcloud azure consul; do
  declare -n words=$recipe
  FAULT=garbage fails 'is not JSON' "${words[@]}"
  FAULT=half fails 'is not JSON' "${words[@]}"
  FAULT=other fails 'the answer lacks what it should have' "${words[@]}"
  FAULT=hang fails 'no answer within 1s (--timeout)' "${words[@]}" --timeout 1
  left=$(marked)
  [ -z "$left" ] || die "$recipe has left processes behind: $(for pid in $left; do show_process "$pid"; done)"
done
changes aws-ec2 's/127.0.0.1/127.0.0.1 127.0.0.9/'
fails 'cannot be the name or address of a host' "${aws[@]}"
again

# ---- wrong use ----------------------------------------------------------------------------------------------

fails '--group is not given; give it, or set DISCOVER_GROUP' aws.py
fails '--resource-group is not given' azure.py --group train
fails 'a group has one of the two' gcloud.py --group train
fails "--slots: '-1' is no number from 0 to 1024" "${aws[@]}" --slots=-1
fails "--timeout: '0' is no number of seconds" "${aws[@]}" --timeout 0
CONSUL_HTTP_TOKEN='a"b' fails 'CONSUL_HTTP_TOKEN has a quote' "${consul[@]}"
mkdir bare
ln -s "$(realpath tools/python3)" bare/python3
TOOLS=$folder/bare fails 'aws: there is no such program in PATH; install the aws CLI' "${aws[@]}"
TOOLS=$folder/bare fails 'gcloud: there is no such program in PATH; install' "${gcloud[@]}"
TOOLS=$folder/bare fails 'az: there is no such program in PATH; install' "${azure[@]}"
TOOLS=$folder/bare fails 'curl: there is no such program in PATH; install curl' "${consul[@]}"
TOOLS=$folder/bare fails 'nopython: there is no such program in PATH; name a Python' ray_nodes.py --python nopython

# ---- a job that follows a group -----------------------------------------------------------------------------

# The tool fails as the file `fault` says, because the environment of a driver's script does not change.
cat >tools/aws.new <<'END'
#!/bin/sh
FAULT=$(cat "$ANSWERS/fault") PATH=$PATH exec "$ANSWERS/played/aws" "$@"
END
chmod +x tools/aws.new
mkdir answers/played
ln -s "$tree/tests/recipes/tool" answers/played/aws
mv tools/aws.new tools/aws
: >answers/fault
DISCOVER_GROUP=train DISCOVER_SLOTS=2 DISCOVER_TIMEOUT=2 start --min-np 2 --max-np 8 \
  --host-discovery-script "$recipes/aws.py" -- "$trainer" --step-ms 5 --say "$say"
await_round 4
changes aws-ec2 '/i-0a2/s/running/shutting-down/'
await_round 2
# fault FAULT TEXT: the driver's log tells of the failure.
fault() {
  echo "$1" >answers/fault
  await "$err" "$2"
}
fault 'error 254 An error occurred (ExpiredToken) when calling' ExpiredToken
fault garbage 'the answer is not JSON'
fault hang 'no answer within 2s'
[ "$(ask hosts | grep -c '^127.0.0.1 ')" = 1 ] || die "the host has left while the tool fails: $(ask hosts)"
again
: >answers/fault
await_round 4
ask stop || die "stop: exit code $?"
finish 143
say_line 'four recipes list the machines that serve; a failure leaves the last list; a job follows the group'
