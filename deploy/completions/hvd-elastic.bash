# shellcheck shell=bash
# Completion for bash: the options of the programs, as each program lists them itself, and the verbs of hvd-elastic.
_hvd_elastic() {
  local program=$1 current=$2 words=''
  case $current in
    -*) words=$("$program" --list-options 2>/dev/null | sed 's/\t.*//; s/^/--/') ;;
    *)
      [ "$COMP_CWORD" != 1 ] || [ "${program##*/}" != hvd-elastic ] ||
        words=$("$program" --help 2>/dev/null |
          awk '/^ *hvd-elastic [a-z]+ \|/ { on = 1 } on { sub(/^ *hvd-elastic /, ""); end = sub(/\[--help\]$/, ""); gsub(/\|/, " "); print } end { on = end = 0 }')
      ;;
  esac
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}
complete -o default -o bashdefault -F _hvd_elastic hvd-elastic hvd-agent hvd-hosts hvd-audit hvd-timeline hvd-bench
