#!/usr/bin/env bash
# The installed files are enough to train with: a program is built outside of the tree with nothing but
# what pkg-config says of hvd, and by CMake with find_package(hvd), once for the shared and once for the static library.
# It runs by itself, and under the installed hvd-elastic, where a worker is killed. The installed tree has been moved.
#
#     outside.sh BUILD-FOLDER C-COMPILER [FLAG...]
#
# The flags are what the library cannot be linked without: its sanitizers.
source=$(dirname "$(realpath "$0")")/count.c
. "$(dirname "$0")/../shell/lib.sh"
test_begin "$1/driver/hvd-elastic" "$source"
build=$1 cc=$2
shift 2
prefix=$folder/prefix
elastic=$prefix/bin/hvd-elastic

env -u DESTDIR cmake --install "$build" --prefix "$folder/first" >install.log || die "$(cat install.log)"
mv first "$prefix"
PKG_CONFIG_LIBDIR=$(dirname "$(find "$prefix" -name hvd.pc)")
LD_LIBRARY_PATH=$(PKG_CONFIG_LIBDIR=$PKG_CONFIG_LIBDIR pkg-config --variable=libdir hvd)
export PKG_CONFIG_LIBDIR LD_LIBRARY_PATH

# compile NAME WORDS-FOR-PKG-CONFIG...
compile() {
  local name=$1 use
  shift
  read -ra use <<<"$(pkg-config "$@" hvd)"
  "$cc" -std=c11 -Wall -Wextra -Werror "${flags[@]}" "$source" -o "$name" "${use[@]}" ||
    die "$name is not linked by pkg-config $*"
  trainer=$folder/$name
}

# compile_by_cmake NAME TARGET: a project of its own, which knows the prefix alone.
compile_by_cmake() {
  local name=$1
  mkdir "$name.project"
  cp "$source" "$name.project/count.c"
  cat >"$name.project/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.16)
project($name LANGUAGES C)
find_package(hvd 0.1 REQUIRED)
add_executable($name count.c)
target_link_libraries($name PRIVATE $2)
END
  env -u CMAKE_C_COMPILER_LAUNCHER cmake -S "$name.project" -B "$name.build" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_COMPILER="$cc" \
    -DCMAKE_C_FLAGS="${flags[*]}" >"$name.log" 2>&1 || die "CMake does not find hvd: $(cat "$name.log")"
  cmake --build "$name.build" >"$name.log" 2>&1 || die "$name is not built by CMake: $(cat "$name.log")"
  trainer=$folder/$name.build/$name
}

# A job of one, without a driver.
run_alone() {
  local said
  : >stop
  said=$("$trainer" alone.say stop | tail -n 1) || die "$trainer alone: exit code $?"
  [ "$said" = 'counted 1' ] || die "$trainer alone says: $said"
  rm stop
}

# Of two workers one is killed, and comes back; then both have counted the same.
run_elastically() {
  local pids
  new_job
  start -np 2 --min-np 1 -H 127.0.0.1:1,127.0.0.2:1 "$trainer" "$say" "$folder/stop"
  await_round 2
  mapfile -t pids < <(workers)
  [ ${#pids[@]} = 2 ] || die "${#pids[@]} workers run, not 2"
  kill -KILL "${pids[RANDOM % 2]}"
  await_round 2
  : >stop
  finish 0
  [ "$(grep -c 'counted [1-9]' "$out")" = 2 ] || die 'two workers were to say what they have counted'
  [ "$(sed -n 's/.*counted //p' "$out" | sort -u | wc -l)" = 1 ] || die "they have not counted the same: $(cat "$out")"
  rm stop
}

flags=("$@")
compile shared --cflags --libs
if ! nm -D --undefined-only shared | grep -q hvd_init; then die 'libhvd.so is not what it was linked with'; fi
run_alone
run_elastically

compile_by_cmake shared_by_cmake hvd::hvd
nm -D --undefined-only "$trainer" | grep -q hvd_init || die 'CMake has not linked it with libhvd.so'
LD_LIBRARY_PATH='' run_alone # CMake has put the path into the program
run_elastically
compile_by_cmake static_by_cmake hvd::hvd_static
if nm -D --undefined-only "$trainer" | grep -q hvd_init; then die 'CMake has not linked it with libhvd.a'; fi
run_alone
run_elastically

rm "$LD_LIBRARY_PATH"/libhvd.so* # ld takes the other where there is this one
compile static --cflags --static --libs
run_alone
run_elastically
say_line 'installed and moved; built outside of the tree by pkg-config and by CMake, shared and static; a worker killed each time'
