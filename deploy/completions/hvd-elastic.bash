# shellcheck shell=bash
# Completion for bash: the options of the programs, as each program lists them itself, and the verbs of hvd-elastic.
_hvd_elastic() {
  local program=$1 current=$2 words=''
  case $current in
    -*) words=$("$program" --list-options 2>/dev/null | sed 's/\t.*//; s/^/--/') ;;
    *)
      [ "$COMP_CWORD" != 1 ] || [ "${program##*/}" != hvd-elastic ] ||
        words=$("$program" --help 2>/dev/null | sed -n 's/^ *hvd-elastic \(.* | .*\) \[--help\]$/\1/p' | tr -d '|')
      ;;
  esac
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}
complete -o default -o bashdefault -F _hvd_elastic hvd-elastic hvd-agent hvd-hosts hvd-audit hvd-timeline hvd-bench
