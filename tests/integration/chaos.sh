#!/usr/bin/env bash
# One job, and to it by chance everything that can be done to processes, several things at a time. After
# each storm it must train again with all its workers, and in the end leave nothing behind. Only the
# first slot of the third host is spared: somebody must live who has the newest commit.
#
#     chaos.sh ELASTIC TRAINER STORMS [SEED]
. "$(dirname "$0")/../body/lib.sh"
body_begin "$@"
storms=$3
seed=${4:-$$}
RANDOM=$seed
say_line "seed $seed"

# A host that was silent when the job ended has not heard of it: its grace is short here.
begin() {
  start -np 6 --min-np 1 --hostfile hosts --beat 100ms --lease 1s --agent-timeout 5s --start-timeout 10s --driver-grace 10s \
    --stall-shutdown 5s "$trainer" --step-ms 2
}

all_hosts=$'127.0.0.1:2\n127.0.0.2:2\n127.0.0.3:2'
echo "$all_hosts" >hosts
frozen=()
deeds=''

# pick WORDS...: one of them in $picked; none when there is none.
pick() {
  picked=''
  [ $# = 0 ] || picked=${!#}
  [ $# -le 1 ] || { shift $((RANDOM % $#)) && picked=$1; }
}

pick_worker() {
  local pids
  mapfile -t pids < <(workers 'HVD_HOST=127.0.0.[12]' && workers HVD_SLOT=1)
  pick "${pids[@]}"
}

pick_agent() {
  local pids
  mapfile -t pids < <(workers 'HVD_HOST=127.0.0.[12]')
  pick "${pids[@]}"
  [ -z "$picked" ] || picked=$(parent "$picked")
}

signal() { # NUMBER WHO PID
  [ -z "$3" ] || [ "$3" = 1 ] || kill "-$1" "$3" 2>/dev/null
  deeds+=" $1:$2"
}

deed() {
  case $((RANDOM % 11)) in
    0 | 1) pick_worker && signal KILL worker "$picked" ;;
    2) pick_worker && signal TERM worker "$picked" ;;
    3) pick_worker && signal STOP worker "$picked" && frozen+=("$picked") ;;
    4 | 5) pick_agent && signal KILL agent "$picked" ;;
    6) pick_agent && signal STOP agent "$picked" && frozen+=("$picked") ;;
    7) pick_agent && signal KILL keeper "$(parent "${picked:-$$}")" ;;
    8) signal STOP driver "$driver" && frozen+=("$driver") ;;
    9) signal KILL driver "$driver" && restart=1 ;;
    10)
      sed -i "$((1 + RANDOM % 2))d" hosts
      deeds+=' host-gone'
      ;;
  esac
}

# Not yet: again when something has happened, or soon. It is whole when six train, and their processes run.
is_whole() {
  local pids
  BODY_TEST=$folder timeout 10 "$elastic" hosts --state-dir "$state" --json >view 2>/dev/null || return 1
  [ "$(grep -o '"trains":true' view | wc -l)" = 6 ] || return 1
  mapfile -t pids < <(workers)
  [ ${#pids[@]} = 6 ]
}

await_whole() {
  local until=$((SECONDS + PATIENCE))
  until is_whole; do
    [ $SECONDS -lt $until ] || die "seed $seed, storm $1 ($deeds): the job is not whole again: $(cat view)"
    timeout 0.1 tail -n 0 -f "$state/events.log" >/dev/null
  done
}

begin
await "$err" 'all 6 train'
for ((storm = 1; storm <= storms; storm++)); do
  deeds='' restart=0
  frozen=()
  for ((i = 0; i <= RANDOM % 4; i++)); do
    deed
    ((RANDOM % 2)) || timeout "0.0$((1 + RANDOM % 9))" tail -f /dev/null
  done
  ((RANDOM % 2)) || timeout "1.$((RANDOM % 9))" tail -f /dev/null # longer than a lease
  for pid in "${frozen[@]}"; do kill -CONT "$pid" 2>/dev/null; done
  echo "$all_hosts" >hosts
  if [ $restart = 1 ]; then
    await_driver
    begin
  fi
  is_alive "$driver" || die "seed $seed, storm $storm ($deeds): no driver"
  await_whole "$storm"
  [ -z "${VERBOSE:-}" ] || say_line "storm $storm:$deeds"
done
ask stop || die "stop: exit code $?"
finish 143
say_line "$storms storms; $(grep -c ' train$' "$state/events.log") rounds"
