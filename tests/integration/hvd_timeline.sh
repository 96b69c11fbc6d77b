#!/usr/bin/env bash
# hvd-timeline: which worker was last, from timelines as jobs leave them, and from files that are none.
#
#     hvd_timeline.sh PROGRAM
# shellcheck source=tests/shell/tool.sh
. "$(dirname "$0")/../shell/tool.sh"

job() { # BEGAN
  printf '[\n{"ph":"i","s":"g","cat":"job","ts":%s,"pid":1,"tid":1,"name":"the job begins","args":{"job":"j"}},\n' "$1"
}

worker() { # PID NAME
  printf '{"ph":"M","pid":%s,"tid":1,"cat":"rounds","ts":5,"name":"process_name","args":{"name":"%s"}},\n' "$1" "$2"
}

# call PID BEGAN LASTED NUMBER MEMBERS [MORE [OPERATION [ENDED]]]
call() {
  printf '{"ph":"X","pid":%s,"tid":4,"cat":"collectives","ts":%s,"dur":%s,"name":"%s","args":{"number":%s,"round":1,"rank":0%s,"members":%s,"ended":"%s"}},\n' \
    "$1" "$2" "$3" "${7:-allreduce}" "$4" "${6:-}" "$5" "${8:-done}"
}

{
  job 1000
  worker 1 'rank 0, a slot 0 (incarnation 1)'
  worker 2 'rank 1, b slot 0 (incarnation 2)'
  call 1 100 60 1 2
  call 2 150 10 1 2
  call 1 200 9 2 2
  call 2 190 19 2 2
} >one.json
expect 0 out '2 collectives were compared' one.json
expect 0 out '         1        50us        50us  rank 1, b slot 0 (incarnation 2)' one.json
expect 0 out 'time between first and last rank: 60us, at most 50us, in call 1 of round 1' one.json
expect 0 out '{"compared":2,"partial":0,"spread_us":60,"clock_us":0,"worst":{"us":50,"round":1,"number":1},"workers":[{"worker":"rank 1, b slot 0 (incarnation 2)","last":1,"alone_us":50,"most_us":50},' --json one.json

# files of two hosts; a call that a killed worker has not made; a join, a failed call and a lone rank do not count
{
  job 1000
  call 1 100 60 1 3
  call 2 150 10 1 3
  call 1 200 60 2 3
  call 2 210 60 2 3
} >a.json
{
  job 1000
  worker 3 'rank 2'
  call 3 450 2 1 3
  call 3 500 2 9 1
  call 3 500 2 9 2 '' join
  call 3 500 2 9 2 '' allreduce HVD_E_LOST
} >b.json
expect 1 out '0 collectives were compared; 2 more could not be compared, because the calls of some ranks are missing' a.json
expect 0 out '1 collectives were compared; 1 more could not be compared, because the calls of some ranks are missing' a.json b.json
expect 0 out '         1       300us       300us  rank 2' a.json b.json
expect 0 out 'the clocks of the machines differ by 290us or more' a.json b.json

# two groups of one number are not one
{
  job 1000
  call 1 100 9 1 2 ',"group":1,"lowest":0'
  call 2 200 9 1 2 ',"group":1,"lowest":0'
  call 3 300 9 1 2 ',"group":1,"lowest":2'
  call 4 400 9 1 2 ',"group":1,"lowest":2'
} >groups.json
expect 0 out 'time between first and last rank: 200us' groups.json

# a file that was closed by hand, and one that is being written
{ cat one.json; echo '{}]'; } >closed.json
expect 0 out '2 collectives' closed.json
{ cat one.json; printf '{"ph":"X","pid"'; } >torn.json
expect 0 out '2 collectives' torn.json

expect 2 err 'the file is missing; name the file that --timeline-filename has written'
expect 2 err '--jsan' --jsan one.json
expect 1 err 'none.json: cannot open: No such file' none.json
echo 'my thesis' >thesis
expect 1 err 'thesis: line 1: the line is no event; the file is no timeline' thesis
head -c 1000000 /dev/zero >zeros
expect 1 err 'zeros: line 1: the line is too long for a timeline of hvd-elastic, or no memory is left; leave this file out' zeros
job 2000 >other.json
expect 1 err 'other.json: line 2: this is the timeline of another job' one.json other.json
expect 1 err 'call 1 of round 1 is in the files twice for the same worker; name each file once' one.json one.json
: >empty
expect 1 out '0 collectives were compared' empty
