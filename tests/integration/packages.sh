#!/usr/bin/env bash
# The Debian packages that cpack makes: each has what it is for and names what it needs; unpacked into an empty folder,
# driver, agent and library run from there, and a program is built against libhvd-dev.
#
#     packages.sh BUILD-FOLDER C-COMPILER [FLAG...]
#
# The flags are what the library cannot be linked without: its sanitizers.
source=$(dirname "$(realpath "$0")")/count.c
. "$(dirname "$0")/../shell/lib.sh"
build=$(realpath "$1") cc=$2
shift 2
for program in cpack dpkg-deb dpkg-shlibdeps help2man; do
  command -v $program >/dev/null || skip "the program $program is not installed (cmake, dpkg, dpkg-dev, help2man)"
done
test_begin "$build/driver/hvd-elastic" "$source"
cpack -G DEB --config "$build/CPackConfig.cmake" -B "$folder/made" >cpack.log 2>&1 || die "cpack: $(tail -n 20 cpack.log)"

# package NAME REGEX...: it is there, and has files that match each; its fields are in NAME.control
root=$folder/root
package() {
  local name=$1 file regex
  shift
  file=$(echo "$folder/made/${name}"_*.deb)
  [ -f "$file" ] || die "no package $name: $(ls made)"
  dpkg-deb -f "$file" >"$name.control"
  dpkg-deb -c "$file" | awk '{ print $6 }' >"$name.files"
  for regex in "$@" "^./usr/share/doc/$name/copyright\$" "^./usr/share/doc/$name/changelog.gz\$"; do
    grep -qE "$regex" "$name.files" || die "$name has no $regex: $(cat "$name.files")"
  done
  dpkg-deb -x "$file" "$root"
  say_line "$name: $(stat -c %s "$file") bytes; $(grep -E '^Depends' "$name.control")"
}
package hvd-elastic '^./usr/bin/hvd-elastic$' '^./usr/bin/hvd-hosts$' '^./usr/bin/hvd-audit$' '^./usr/bin/hvd-timeline$' \
  '^./usr/bin/hvd-bench$' '^./usr/share/man/man1/hvd-elastic.1.gz$' '/completions/hvd-elastic$' '^./usr/lib/systemd/system/hvd-elastic@.service$'
package hvd-agent '^./usr/bin/hvd-agent$' '^./usr/share/man/man1/hvd-agent.1.gz$' '^./usr/lib/systemd/system/hvd-agent.service$'
package libhvd0 '/libhvd.so.0$'
package libhvd-dev '/libhvd.so$' '/libhvd.a$' '/hvd/hvd.h$' '/pkgconfig/hvd.pc$' '/cmake/hvd/hvd-config.cmake$'
if [ -e "$build/worker/libhvd-gloo.so" ]; then package libhvd0-gloo '/libhvd-gloo.so$'; fi
[ "$(sort ./*.files | grep -v '/$' | uniq -d)" = '' ] || die 'two packages have the same file'
grep -qE '^Depends:.*hvd-agent \(= ' hvd-elastic.control || die "hvd-elastic does not need hvd-agent: $(cat hvd-elastic.control)"
grep -qE '^Depends:.*libhvd0' hvd-elastic.control || die "hvd-bench needs libhvd0: $(cat hvd-elastic.control)"
grep -qE '^Depends:.*libhvd0 \(= ' libhvd-dev.control || die "libhvd-dev does not need libhvd0: $(cat libhvd-dev.control)"
if grep -E '^Depends:.*(libhvd|gloo|sqlite|yaml)' hvd-agent.control; then die 'hvd-agent needs more than a host should'; fi

# The address and the search path of hvd-bench are those of this build; the module of Gloo has no name for linkers.
if command -v lintian >/dev/null; then
  TMPDIR=$folder/made lintian --allow-root --fail-on error --suppress-tags \
    bogus-mail-host,bogus-mail-host-in-debian-changelog,custom-library-search-path,sharedobject-in-library-directory-missing-soname \
    made/*.deb >lintian.log 2>&1 || die "lintian: $(grep '^E:' lintian.log)"
  say_line "lintian: no errors, $(grep -c '^W:' lintian.log) warnings"
else
  say_line 'lintian is not installed, and was not asked'
fi

# what is unpacked runs
elastic=$root/usr/bin/hvd-elastic
libraries=$(dirname "$(find "$root" -name libhvd.so.0)")
start -np 2 sh -c "echo ran \$HVD_RANK"
finish 0
[ "$(grep -c 'ran [01]$' "$out")" = 2 ] || die "hvd-elastic -np 2 sh: $(cat "$out")"
pc=$(dirname "$(find "$root" -name hvd.pc)")
read -ra use <<<"$(PKG_CONFIG_LIBDIR=$pc pkg-config --cflags --libs hvd)"
"$cc" -std=c11 "$@" "$source" -o count "${use[@]}" || die 'a program is not built against libhvd-dev'
trainer=$folder/count
export LD_LIBRARY_PATH=$libraries
new_job
start -np 2 --min-np 1 -H 127.0.0.1:1,127.0.0.2:1 "$trainer" "$say" "$folder/stop"
await_round 2
: >stop
finish 0
[ "$(grep -c 'counted [1-9]' "$out")" = 2 ] || die "two workers were to say what they have counted: $(cat "$out")"
say_line 'made, unpacked, and run from there'
