#!/usr/bin/env bash
# The archive for clusters without root (scripts/tarball): unpacked into any folder, and moved, its programs run with no
# variable set, need no library of the machine but those of glibc and gcc, and start agents; a program is built against its
# libhvd and trains; each library of others comes with its licence.
#
#     tarball.sh BUILD-FOLDER C-COMPILER [FLAG...]
#
# The flags are what the library cannot be linked without: its sanitizers.
source=$(dirname "$(realpath "$0")")/count.c
make_tarball=$(dirname "$(realpath "$0")")/../../scripts/tarball
. "$(dirname "$0")/../shell/lib.sh"
build=$(realpath "$1") cc=$2
shift 2
for program in patchelf dpkg-query; do
  command -v $program >/dev/null || skip "the program $program is not installed (patchelf, dpkg)"
done
test_begin "$build/driver/hvd-elastic" "$source"
archive=$("$make_tarball" "$build" "$folder/made") || die 'no archive was made'
mkdir "$folder/first" "$folder/a place"
tar -C "$folder/first" -xzf "$archive"
mv "$folder/first/"hvd-elastic-*/* "$folder/a place"
root="$folder/a place"
say_line "$(basename "$archive"): $(stat -c %s "$archive") bytes, $(tail -n 1 "$root/share/doc/hvd-elastic/libraries")"

# Nothing of the folder in which it was made or unpacked first is left in the files.
for file in "$root"/bin/* "$(find "$root" -name 'libhvd.so.0.*')"; do
  ldd "$file" >libraries
  if grep 'not found' libraries; then die "$file lacks a library"; fi
  others=$(sed -nE 's/^\t[^ ]+ => ([^ ].*) \(.*/\1/p' libraries | grep -vF "$root" |
    grep -vE '/lib(c|m|dl|rt|pthread|resolv|util|anl|gcc_s|stdc\+\+)\.so' || true)
  [ -z "$others" ] || die "$file needs a library of this machine: $others"
done
while read -r library package _; do
  [ "$library" = glibc ] || [ -s "$root/share/doc/hvd-elastic/$package.copyright" ] ||
    die "no licence of $library: $(ls "$root/share/doc/hvd-elastic")"
done < <(tr -d : <"$root/share/doc/hvd-elastic/libraries")
[ "$(find "$root/lib/hvd-elastic" -name '*.so*' | wc -l)" -gt 4 ] || die 'hardly a library was copied'

# The unpacked programs run, and start the agents that lie beside them.
elastic=$root/bin/hvd-elastic
start -np 2 -H 127.0.0.1:1,127.0.0.2:1 sh -c "echo ran \$HVD_RANK"
finish 0
[ "$(grep -c 'ran [01]$' "$out")" = 2 ] || die "hvd-elastic -np 2 sh: $(cat "$out")"
[ "$("$root/bin/hvd-agent" --version)" = "$("$build/agent/hvd-agent" --version)" ] || die 'hvd-agent says another version'

# A program is built against it, and finds the library and its libraries by itself.
PKG_CONFIG_LIBDIR=$(dirname "$(find "$root" -name hvd.pc)")
export PKG_CONFIG_LIBDIR
libraries=$(dirname "$(find "$root" -name libhvd.so)")
mkdir prefix
ln -s "$root" prefix/hvd # pkg-config quotes no blanks for a shell
read -ra use <<<"$(pkg-config --cflags --libs "--define-variable=prefix=$folder/prefix/hvd" hvd)"
"$cc" -std=c11 "$@" "$source" -o count "${use[@]}" "-Wl,-rpath,$libraries" || die 'a program is not built against libhvd'
trainer=$folder/count
new_job
start -np 2 --min-np 1 -H 127.0.0.1:1,127.0.0.2:1 "$trainer" "$say" "$folder/stop"
await_round 2
: >stop
finish 0
[ "$(grep -c 'counted [1-9]' "$out")" = 2 ] || die "two workers were to say what they have counted: $(cat "$out")"

# A machine that lacks a library, and a wrong folder, are named.
if said=$("$make_tarball" "$folder" "$folder/made" 2>&1); then die 'a folder that is no build was taken'; fi
grep -q '^usage: ' <<<"$said" || die "a folder that is no build: $said"
say_line 'unpacked, moved, and run from there'
