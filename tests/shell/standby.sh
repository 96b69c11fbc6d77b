# shellcheck shell=bash
# shellcheck disable=SC2154,SC2034 # what lib.sh and etcd.sh set; what the scripts read
# Standbys of a job that is in the etcd of etcd.sh. Sourced after lib.sh and etcd.sh:
#
#     standby                     starts one more, with the options in standby_options, which waits
#     one_takes_over MS           after the driver's end: the standby that drives now is $driver
url=etcd://$etcd_net.1:2379,$etcd_net.2:2379,$etcd_net.3:2379/tests
standbys=() # NUMBER:PID of those that wait
made=0
standby_options=() # beyond those of all standbys
spent=() # for each takeover the time until the successor's term, in ms

# The number of the server that leads, by the field of "endpoint status" that says so.
etcd_leader() {
  local n
  for n in $cluster; do
    etcdctl --endpoints "$etcd_net.$n:2379" endpoint status 2>/dev/null | grep -q ', true,' && echo "$n" && return
  done
}

standby() {
  made=$((made + 1))
  BODY_TEST=$folder "$elastic" --standby "$job" --store "$url" --state-dir "$folder/sb$made" \
    "${standby_options[@]}" >>"$folder/sb$made.out" 2>>"$folder/sb$made.err" </dev/null &
  standbys+=("$made:$!")
  await "$folder/sb$made.err" 'waiting until it has no driver'
}

# Waits until one of the standbys drives; it becomes $driver. In $spent the time since $1, in ms.
one_takes_over() {
  local entry rest=() files=() won='' stamp
  for entry in "${standbys[@]}"; do files+=("$folder/sb${entry%:*}.err"); done
  timeout "$PATIENCE" tail -q -n +1 -s "$NAP" -f "${files[@]}" | grep -E -m 1 ' term [0-9]+, ' >"$folder/found" || true
  [ -s "$folder/found" ] || die "no standby takes over: $(tail -n 3 "${files[@]}")"
  for entry in "${standbys[@]}"; do
    if grep -q ' term [0-9]*, ' "$folder/sb${entry%:*}.err"; then
      [ -z "$won" ] || die "two standbys drive: $won and $entry"
      won=$entry
    else
      rest+=("$entry")
    fi
  done
  standbys=("${rest[@]}")
  stamp=$(date -d "$(cut -d ' ' -f 1 "$folder/found")" +%s%3N)
  spent+=($((stamp - $1)))
  driver=${won#*:} state=$folder/sb${won%:*} out=$folder/sb${won%:*}.out err=$folder/sb${won%:*}.err
}

# After the end of the job: each standby ends, and says why.
standbys_end() {
  local entry code
  for entry in "${standbys[@]}"; do
    { wait "${entry#*:}"; } 2>/dev/null
    code=$?
    [ $code = 0 ] || die "a standby of a job that has ended ends with $code"
    grep -q 'has ended: ' "$folder/sb${entry%:*}.err" || die "a standby does not say why it ends"
  done
}

# spent_text MS...: "median 1700 ms, 99th percentile 2100 ms, most 2150 ms"
spent_text() {
  printf '%s\n' "$@" | sort -n | awk '{ at[NR] = $1 }
    END { n = int(NR * 0.99 + 0.999); print "median " at[int((NR + 1) / 2)] " ms, 99th percentile " at[n] " ms, most " at[NR] " ms" }'
}
