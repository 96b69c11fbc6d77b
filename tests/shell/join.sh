# shellcheck shell=bash
# shellcheck disable=SC2154 # what lib.sh sets
# Hosts that join by themselves, `hvd-agent --join`. Sourced after lib.sh:
#
#     join_token token
#     join_host s1 '' 127.0.0.1:7700     its log is join-s1.log
#     token_file=other join_host s2 ...  with the token of another file
#     join_leave s1                      SIGTERM
#     join_left s1                       it has ended, with 0
declare -A joined=()
token_file=token

# join_token FILE: a file with a token of its own making.
join_token() { od -An -N32 -tx1 /dev/urandom | tr -d ' \n' >"$1"; }

# join_host NAME PREFIX ADDRESSES [WORDS...]: PREFIX is a command under which the agent runs, or empty.
join_host() {
  local name=$1 prefix=$2 places=$3
  shift 3
  mkdir -p "$folder/$name"
  # shellcheck disable=SC2086 # the prefix has several words
  BODY_TEST=$folder XDG_STATE_HOME=$folder/$name exec_in_background "join-$name.log" $prefix \
    "$(dirname "$elastic")/../agent/hvd-agent" --join "$places" --token-file "$token_file" --name "$name" "$@"
  joined[$name]=$!
}

# refused NAME CODE TEXT: the process has ended with this code, and its log has one such line.
refused() {
  join_left "$1" "$2"
  [ "$(grep -cE "$3" "join-$1.log")" = 1 ] || die "$1 does not say once '$3': $(cat "join-$1.log")"
}

exec_in_background() {
  local log=$1
  shift
  "$@" >>"$log" 2>&1 </dev/null &
}

join_leave() { kill -TERM "${joined[$1]}"; }

# join_left NAME [CODE]: it has ended with this code (0).
join_left() {
  local code=0
  { await_end "${joined[$1]}"; } 2>/dev/null || die "$1 does not end: $(cat "join-$1.log")"
  { wait "${joined[$1]}"; } 2>/dev/null || code=$?
  [ "$code" = "${2:-0}" ] || die "$1 has ended with $code, not ${2:-0}: $(cat "join-$1.log")"
}
