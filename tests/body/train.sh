# shellcheck shell=bash disable=SC2154
# For tests of the library in real jobs, after lib.sh: a job of pupils, and what they come to.

# train_four [OPTIONS... --] WORDS...: four pupils on two hosts, that train with WORDS.
train_four() {
  local options=()
  case " $* " in *' -- '*)
    while [ "$1" != -- ]; do
      options+=("$1")
      shift
    done
    shift
    ;;
  esac
  final=$folder/$job.final
  : >"$final"
  start -np 4 --min-np 2 -H 127.0.0.1:2,127.0.0.2:2 --start-timeout 10s --stall-shutdown 3s --stall-warning 1s \
    "${options[@]}" -- "$trainer" --step-ms 2 --say "$say" --final "$final" "$@"
}

# The worker that was started with this rank.
kill_rank() {
  local pid
  for pid in $(workers); do
    [ "$(variable "$pid" HVD_RANK)" != "$1" ] || kill -KILL "$pid"
  done
}

# all_right STEPS: who has come to the end has made all steps, and has the sum of 1 to STEPS.
all_right() {
  local right="$1 $(($1 * ($1 + 1) / 2))"
  [ -s "$final" ] || die 'nobody came to the end'
  if grep -v " $right\$" "$final" >"$folder/found"; then
    die "an end that is not '$right': $(cat "$folder/found")"
  fi
}
