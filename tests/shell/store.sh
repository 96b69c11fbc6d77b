#!/bin/sh
# The program of --checkpoint-command in tests: objects are files below the folder ROOT. docs/checkpoints.md has the
# contract.
#
#     store.sh ROOT put NAME BYTES | get NAME OFFSET BYTES | list PREFIX | delete NAME
root=$1 operation=$2 name=$3
case $operation in
  put)
    case $name in */*) mkdir -p "$root/${name%/*}" ;; esac
    cat >"$root/new.$$" || exit 1
    # a writer that has died sends fewer bytes
    if [ "$(wc -c <"$root/new.$$")" -ne "$4" ]; then
      echo "$name: fewer than $4 bytes came" >&2
      rm -f "$root/new.$$"
      exit 1
    fi
    mv "$root/new.$$" "$root/$name"
    ;;
  get)
    [ -f "$root/$name" ] || exit 3
    tail -c "+$(($4 + 1))" "$root/$name" | head -c "$5"
    ;;
  list)
    cd "$root" && find . -type f ! -name 'new.*' -printf '%s %P\n' | awk -v prefix="$name" '
      index(substr($0, index($0, " ") + 1), prefix) == 1'
    ;;
  delete) rm -f "$root/$name" ;;
  *) exit 2 ;;
esac
