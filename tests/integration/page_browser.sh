#!/usr/bin/env bash
# The page of --page in a browser: it follows a killed worker to the drawn pause, and a killed driver to the next one,
# without being loaded anew; a change after a new driver has its own reason; hostile texts stay texts; it is readable
# wide, on a telephone and dark. The file of the verb "page" shows the same pause when the job lives, has no driver, and
# has ended.
# Skipped where Chromium is missing.
#
#     page_browser.sh ELASTIC TRAINER PAGE [PICTURE [FOLDER]]
#
# PAGE is the page as the build has made it. PICTURE takes a picture of the live page; FOLDER takes the pictures of made-up jobs.
. "$(dirname "$0")/../shell/lib.sh"
command -v chromium >/dev/null || { echo 'SKIP: no chromium; ./dev setup picture installs it' && exit 77; }
page=$(realpath "$3") picture=${4:+$(realpath "$4")} pictures=${5:+$(realpath "$5")}
test_begin "$1" "$2"
look() { PYTHONDONTWRITEBYTECODE=1 python3 "$(dirname "$script")/../shell/page_live.py" "$@"; }
job_with_page() {
  start -np 4 --min-np 2 -H 127.0.0.1:2,127.0.0.2:2 --blacklist-cooldown-range 1h 1h --page "$@" "$trainer" --say "$say"
}
# show STEP: until the page shows it.
show() {
  say_line "$1" >&"$steps"
  await_shown "$1"
}
await_shown() {
  local until=$((SECONDS + PATIENCE))
  until grep -qx "$1" shown 2>/dev/null; do
    is_alive "$viewer" || die "$1: $(cat viewer.log)"
    [ $SECONDS -lt $until ] || die "$1: the page does not show it: $(cat viewer.log)"
    timeout $NAP tail -f /dev/null
  done
}

job_with_page 0
await "$err" 'the page is at http://127\.0\.0\.1:[0-9]+/$'
url=$(grep -oE 'http://127[^ ]+/$' "$err")
await "$err" 'round [0-9]+: all 4 train'
mkfifo steps
look follow "$url" steps shown ${picture:+"$picture"} >viewer.log 2>&1 &
viewer=$!
helpers+=("$viewer")
exec {steps}>steps
show trains
victim=$(workers HVD_HOST=127.0.0.2 | head -n 1)
kill -KILL "$victim"
show killed
kill_driver
show gone
ask page >orphaned.html || die "page of a job without a driver: $?"
port=${url##*:}
job_with_page "${port%/}"
show back
ask page >living.html || die "page of a living job: $?"
kill -KILL "$(workers HVD_HOST=127.0.0.1 | head -n 1)"
show followed
say_line end >&"$steps"
await_end "$viewer" || die "the browser does not end: $(cat viewer.log)"
wait "$viewer" || die "$(cat viewer.log)"
say_line "$(cat viewer.log)"
ask stop >answer 2>&1 || die "stop: $(cat answer)"
await_driver
[ "$code" = 143 ] || die "exit code $code"
ask page >ended.html || die "page of an ended job: $?"
look files living.html orphaned.html ended.html ${pictures:+"$pictures"} >files.log 2>&1 || die "$(cat files.log)"
say_line "$(cat files.log)"

# with --page-control a reader drains a host and stops the job, and is asked before
new_job
job_with_page 0 --page-control
await "$err" 'the page is at http://127\.0\.0\.1:[0-9]+/\?token='
await "$err" 'round [0-9]+: all 4 train'
look control "$(grep -oE 'http://127[^ ]+$' "$err")" ${pictures:+"$pictures"} >control.log 2>&1 || die "$(cat control.log)"
say_line "$(cat control.log)"
await_driver
[ "$code" = 143 ] || die "exit code $code"

look made "$page" ${pictures:+"$pictures"} >made.log 2>&1 || die "$(cat made.log)"
say_line "$(cat made.log)"
