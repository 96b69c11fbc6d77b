#!/usr/bin/env bash
# Shells complete options and verbs: bash always, zsh and fish where they are installed. The options and verbs are those of the
# programs.
#
#     completions.sh ELASTIC
completions=$(realpath "$(dirname "$0")/../../deploy/completions")
. "$(dirname "$0")/../shell/lib.sh"
test_begin "$1" "$1"
PATH=$(dirname "$elastic"):$(realpath "$(dirname "$elastic")/../agent"):$PATH

# expect SHELL WORD...: the file `said` has each word as a line of its own
expect() {
  local shell=$1 word
  shift
  for word in "$@"; do grep -qx -- "$word" said || die "$shell does not offer $word: $(head -c 500 said)"; done
}

# shellcheck source=/dev/null
. "$completions/hvd-elastic.bash"
in_bash() { # PROGRAM INDEX WORD
  # shellcheck disable=SC2034
  COMP_CWORD=$2 COMPREPLY=()
  _hvd_elastic "$1" "$3" "$1"
  printf '%s\n' "${COMPREPLY[@]}" >said
}
in_bash hvd-elastic 1 --check
expect bash --checkpoint-dir --checkpoint-interval
! grep -qv '^--check' said || die "bash offers other words: $(cat said)"
in_bash hvd-elastic 1 ''
expect bash status top stop blacklist jobs checkpoints
in_bash hvd-elastic 2 st
! grep -qx status said || die 'bash offers a verb after the first word'
in_bash hvd-agent 1 --jo
expect bash --join
in_bash "$elastic" 1 stat
expect bash status
say_line 'bash completes options and verbs'

if command -v zsh >/dev/null; then
  in_zsh() { # PROGRAM INDEX WORD
    FILE=$completions/_hvd-elastic NAME=$1 INDEX=$2 WORD=$3 zsh -f -c '
      compadd() { shift; print -l -- "$@" }
      _files() { }
      complete() { local -a words=("$NAME" "$WORD"); local CURRENT=$((INDEX + 1)) PREFIX=$WORD; source "$FILE" }
      complete' >said || die "zsh: $(cat said)"
  }
  in_zsh hvd-elastic 1 --che
  expect zsh --checkpoint-dir
  in_zsh hvd-elastic 1 ''
  expect zsh status top jobs
  say_line 'zsh completes options and verbs'
else
  say_line 'zsh is not installed: its completion was not tried'
fi

if command -v fish >/dev/null; then
  in_fish() { HOME=$folder fish -N -c "source '$completions/hvd-elastic.fish'; complete -C '$1'" | cut -f 1 >said; }
  in_fish 'hvd-elastic --che'
  expect fish --checkpoint-dir
  in_fish 'hvd-elastic st'
  expect fish status stop
  say_line 'fish completes options and verbs'
else
  say_line 'fish is not installed: its completion was not tried'
fi
