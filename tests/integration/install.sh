#!/usr/bin/env bash
# The installed files are enough, and libhvd needs no more than it must: a C and a C++ program are built with nothing but what pkg-config
# says of hvd, from a prefix that has been moved, and run.
#
#     install.sh BUILD-FOLDER C-COMPILER [FLAG...]
#
# The flags are what the library cannot be linked without: its sanitizers.
set -euo pipefail
build=$1
cc=$2
shift 2

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

env -u DESTDIR cmake --install "$build" --prefix "$work/first" >"$work/log" || {
  cat "$work/log" >&2
  exit 1
}
mv "$work/first" "$work/prefix"
PKG_CONFIG_LIBDIR=$(dirname "$(find "$work/prefix" -name hvd.pc)")
export PKG_CONFIG_LIBDIR
read -ra use <<<"$(pkg-config --cflags --libs hvd)"
version=$(pkg-config --modversion hvd)
LD_LIBRARY_PATH=$(pkg-config --variable=libdir hvd)

cat >"$work/program.c" <<'END'
#include <hvd/hvd.h>
#include <stdio.h>

int main(void)
{
    printf("%s\n", hvd_version());
    printf("%d.%d.%d\n", HVD_VERSION_MAJOR, HVD_VERSION_MINOR, HVD_VERSION_PATCH);
    printf("%s\n", hvd_strerror(HVD_E_LIMIT));
    return 0;
}
END
cp "$work/program.c" "$work/program.cc"

# build_and_run COMPILER SOURCE [FLAG...]
build_and_run() {
  local compiler=$1 source=$2 expected said
  shift 2
  "$compiler" -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wundef -Werror "$@" "$source" -o "$source.out" "${use[@]}"
  said=$(LD_LIBRARY_PATH=$LD_LIBRARY_PATH "$source.out")
  expected=$(printf '%s\n' "$version" "$version" "a limit would be exceeded")
  if [ "$said" != "$expected" ]; then
    printf '%s, built by %s, says\n%s\nnot\n%s\n' "$source" "$compiler" "$said" "$expected" >&2
    exit 1
  fi
}

# A program that uses the library, from the moved prefix: it finds libhvd.so by itself.
said=$(env -u LD_LIBRARY_PATH "$work/prefix/bin/hvd-bench" allreduce --max-bytes 4096 --repeats 1)
if ! grep -qE '^ +4096 +1 ' <<<"$said"; then
  printf 'the installed hvd-bench says\n%s\n' "$said" >&2
  exit 1
fi

# libhvd.so needs nothing of Gloo's and nothing of C++: only the module does, which lies beside it.
needed=$(readelf -dW "$LD_LIBRARY_PATH/libhvd.so" | sed -n 's/.*(NEEDED).*\[\(.*\)\]$/\1/p')
if grep -E '^lib(gloo|ibverbs|nl-|stdc\+\+)' <<<"$needed"; then
  echo "libhvd.so needs the libraries above; make a module of what needs them" >&2
  exit 1
fi
by_gloo() { # a job whose workers use Gloo's link
  env -u HVD_GLOO_LIBRARY "$work/prefix/bin/hvd-elastic" -np 2 --cpu-operations gloo --min-np 2 --blacklist-forever \
    "$work/prefix/bin/hvd-bench" allreduce --max-bytes 4096 --repeats 1 2>&1
}
module=$LD_LIBRARY_PATH/libhvd-gloo.so
if [ -e "$module" ]; then
  if ! said=$(by_gloo) || ! grep -qE ' 4096 +1 ' <<<"$said"; then
    printf 'with the module beside libhvd, hvd-bench over Gloo says\n%s\n' "$said" >&2
    exit 1
  fi
  rm "$module"
else
  echo "skipped for the module: this build is without Gloo (HVD_GLOO=OFF)"
fi
if said=$(by_gloo) || ! grep -q 'libhvd-gloo.so: .*HVD_GLOO_LIBRARY.*leave out --cpu-operations gloo' <<<"$said"; then
  printf 'without the module, hvd-bench over Gloo says\n%s\n' "$said" >&2
  exit 1
fi

build_and_run "$cc" "$work/program.c" -std=c11 -Wstrict-prototypes "$@"
# gcc-12 -> g++-12, clang -> clang++, cc -> c++
cxx=$(sed -E 's|clang([^/]*)$|clang++\1|; t; s|gcc([^/]*)$|g++\1|; t; s|cc$|c++|' <<<"$cc")
if ! command -v "$cxx" >/dev/null; then
  echo "skipped for C++: there is no $cxx; install g++ or clang"
  exit 77
fi
build_and_run "$cxx" "$work/program.cc" -std=c++11 -Wold-style-cast "$@"
echo "hvd $version: installed, moved, and used from C and C++"
