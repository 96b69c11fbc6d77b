#!/usr/bin/env bash
# --metrics-textfile of a real job: the file has the series of --metrics, follows a lost worker, is whole at each look,
# and outlives its driver and its folder; the job has no part in that.
#
#     metrics_textfile.sh ELASTIC TRAINER
. "$(dirname "$0")/../shell/lib.sh"
. "$(dirname "$0")/../shell/metrics.sh"
test_begin "$@"
prom=$folder/textfiles/hvd.prom

# refused TEXT PATH: at the start, with code 2 and this text
refused() {
  local code=0
  "$elastic" -np 1 -H localhost:1 --metrics-textfile "$2" true >answer 2>&1 || code=$?
  [ "$code" = 2 ] || die "--metrics-textfile $2: exit code $code, not 2: $(cat answer)"
  grep -qF -- "$1" answer || die "--metrics-textfile $2: $(cat answer)"
}
refused 'only files whose names end in .prom; give such a name' "$folder/hvd.txt"
refused "$folder/textfiles: no file can be made in this folder: No such file or directory; create the directory" "$prom"
mkdir textfiles

# look_begin, look_end: between them the file is read again and again. It is there, and whole, each time.
look_begin() {
  rm -f looking looked
  python3 - "$prom" >look.err 2>&1 <<'PY' &
import os, re, sys, time
sample = re.compile(r'hvd_elastic_[a-z_]+(\{[a-z_]+="[^"]*"(,[a-z_]+="[^"]*")*\})? [^ ]+')
texts, reads = set(), 0
while not os.path.exists("looked"):
    with open(sys.argv[1]) as file:
        text = file.read()
    reads += 1
    lines = text.split("\n")
    assert lines[-1] == "" and lines[0].startswith("# HELP"), f"half of it: {text[:99]} ... {text[-99:]}"
    assert lines[-2].startswith('hvd_elastic_pause_phase_seconds_count{cause="recovery",phase="first_step"} '), lines[-2]
    if text not in texts:  # without a time behind the value
        assert all(line.startswith("# ") or sample.fullmatch(line) for line in lines[:-1]), text
    texts.add(text)
    open("looking", "w").close()
    time.sleep(0.001)  # spares the processor
assert len(texts) > 1, f"the same text at {reads} looks"
print(f"{reads} looks, {len(texts)} texts")
PY
  looker=$!
  helpers+=("$looker")
  await_true 'the first look at the file' test -e looking
}
look_end() {
  : >looked
  wait "$looker" || die "a look at the file: $(tail -n 3 look.err)"
  cat look.err
}

in_file() { grep -qE -- "$1" "$prom" 2>/dev/null; }
await_file() { await_true "'$1' in $prom" in_file "$1"; }

# as_served: the file has the series that --metrics serves now
as_served() {
  scrape text/plain
  diff <(sed -E '/^#/!s/ [^ ]+$//' scraped) <(sed -E '/^#/!s/ [^ ]+$//' "$prom") >answer
}

words=(-np 4 --min-np 2 -H '127.0.0.1:2,127.0.0.2:2' --blacklist-cooldown-range 1h 1h --metrics-textfile "$prom")
start "${words[@]}" --metrics 0 "$trainer" --say "$say"
await_true "$prom" test -e "$prom"
await "$err" 'the metrics are at http'
look_begin
await "$err" 'round [0-9]+: all 4 train'
kill -KILL "$(workers HVD_HOST=127.0.0.2 | head -n 1)"
await_file 'worker_failures_total\{host="127.0.0.2"\} 1$'
await_true 'the same series in the file and at --metrics' as_served
look_end
if promtool --version >answer 2>&1; then
  promtool check metrics <"$prom" >answer 2>&1 || die "promtool: $(cat answer)"
  [ ! -s answer ] || die "promtool has remarks: $(cat answer)"
else
  say_line 'promtool is not here, so the file was not shown to it; ./dev setup prometheus installs it'
fi

# The folder goes away, and comes back.
mv textfiles elsewhere
await "$err" 'warning .*goes on with old metrics in its file: .*hvd.prom: .*No such file or directory; create the directory'
mkdir textfiles
await "$err" 'hvd.prom: the metrics are written again'
await_file '^hvd_elastic_world_size 3$'

# The folder goes away with the driver: the next driver takes the job over without it.
kill_driver
mv textfiles elsewhere/second
BODY_TEST=$folder "$elastic" --resume "$job" --state-dir "$state" >>"$out" 2>>"$err" </dev/null &
driver=$!
await "$err" 'goes on with old metrics in its file: .*create the directory' 2
await "$err" 'round [0-9]+: all 3 train' 2

# The driver dies while it writes. The next driver has the same file, without --metrics.
kill_driver
mv elsewhere/second textfiles
printf '# HELP hvd_elas' >"$prom.new"
look_begin
start "${words[@]}" "$trainer" --say "$say"
await_file '^hvd_elastic_driver_term 3$'
in_file 'worker_failures_total\{host="127.0.0.2"\} 1$' || die "the failure is forgotten: $(cat "$prom")"
[ ! -e "$prom.new" ] || die 'what the dead driver had begun is left'
await "$err" 'round [0-9]+: all 3 train' 3

# The end of the job is in the file, and the file stays.
ask stop >answer 2>&1 || die "stop: $(cat answer)"
finish 143
look_end
in_file '^hvd_elastic_job_state\{state="over"\} 1$' || die "not the end: $(cat "$prom")"
[ "$(ls textfiles)" = hvd.prom ] || die "also in the folder: $(ls textfiles)"
[ "$(grep -c 'goes on with old metrics' "$err")" = 2 ] || die 'more than two warnings'
say_line 'a file has the metrics of a job over a lost worker, folder and driver'
