# shellcheck shell=bash disable=SC2154
# draft, replaced by lib.sh of conf1
. "$(dirname "$0")/../body/lib.sh"
expect() { # EXPECTED SEEN
  if [ "$1" = "$2" ]; then say_line "ok      $scenario: $1"; else say_line "FAILED  $scenario"; say_line "  expected $1"; say_line "  seen     $2"; failed=1; fi
}
reference_blacklist=(--blacklist-scope host --blacklist-forever)
