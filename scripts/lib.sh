# lib.sh: what the scripts share. Sourced, never run; the caller is then at the root of the tree.
# shellcheck shell=bash disable=SC2034 # variables are for the callers
set -euo pipefail
export LC_ALL=C
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
cores=$(nproc)
at_once=$((4 * cores)) # tests; one that computes counts for three, see tests/CMakeLists.txt

die() {
  printf '%s\n' "$*" >&2
  exit 1
}

# Every file of the tree, new ones too. Without git (a tarball, a copy) the folders are walked.
tree_files() {
  local listed
  if [ -e .git ] && listed=$(git ls-files --cached --others --exclude-standard 2>/dev/null); then
    sort -u <<<"$listed" | while read -r file; do [ ! -f "$file" ] || printf '%s\n' "$file"; done
  else
    find . \( -path ./build -o -path ./.cache -o -path ./.git \) -prune -o -type f -print |
      sed 's|^\./||' | sort
  fi
}

# pick REGEX [file...]: the files that match, among those named or else in the whole tree.
pick() {
  local regex=$1
  shift
  if [ $# -gt 0 ]; then printf '%s\n' "$@"; else tree_files; fi | { grep -E "$regex" || true; }
}

# The rows of a table under scripts/, without comments and blank lines.
rows() {
  sed 's/^#.*//; /^[[:space:]]*$/d' "scripts/$1"
}

# Passes findings on, and fails when there were any.
report() {
  ! grep .
}

# Makes a preset's build files when there are none or the presets changed; ninja sees the rest.
configure() {
  local log=build/$1/configure.log
  [ "build/$1/build.ninja" -nt CMakePresets.json ] && return
  mkdir -p "build/$1"
  cmake --preset "$1" >"$log" 2>&1 || {
    grep -A 12 '^CMake Error' "$log" || cat "$log"
    return 1
  }
}

# make_quietly PRESET [target...]: says nothing but what the compiler has to say.
make_quietly() {
  configure "$1" && ninja -C "build/$1" --quiet "${@:2}" |
    sed "/^-- /d; /^ninja: no work to do/d; /^FAILED: /{N;d}; s|$root/||g"
}

# Runs what is built with sanitizers. Those of gcc 12 and clang 14 want fixed addresses, which a
# kernel that randomises more than 28 bits may have given away; where it is allowed, it is told not
# to.
steady() {
  if setarch -R true 2>/dev/null; then setarch -R "$@"; else "$@"; fi
}

# programs_of PRESET pure|other: test_, fuzz_ and story_ programs of nothing but pure floors, or of others.
programs_of() {
  awk -v wanted="$2" '
    /^build tests\/(test|fuzz|story)_[^ ]*: .*_EXECUTABLE_LINKER/ {
      program = substr($2, 7, length($2) - 7)
    }
    /^  LINK_LIBRARIES = / {
      kind = / (os|sqlite|collectives)\// ? "other" : "pure"
      if (program && kind == wanted)
        print program
      program = ""
    }
  ' "build/$1/build.ninja"
}

# test_quietly PRESET LABELS REGEX [JOBS]: runs the tests with such names, but those with these labels (a
# regex). When some fail, says which, shows what they said, and fails.
test_quietly() {
  local preset=$1 without=$2 regex=$3 jobs=${4:-$at_once} log=build/check/ctest-$1.log
  mkdir -p build/check
  steady ctest --preset "$preset" -j "$jobs" -R "$regex" -LE "$without" >"$log" 2>&1 && return
  # with ccache a path may begin in the build folder of another clone: .../build/tsan/../../
  sed -E "s@[^ ]*/build/[a-z]+/\.\./\.\./@@g; s@$root/@@g; s@^.*SUMMARY: ThreadSanitizer: @@" "$log" |
    sed -n 's|^\(data race\) \([^ :]*:[0-9]*\)[:0-9]* in |\2: \1; lock it, or let one own it: |p' |
    sort -u
  sed -n 's|^[[:space:]]*[0-9]* - \([^ ]*\) (\(.*\))$|tests/CMakeLists.txt:1: \1: \2|p' "$log" |
    sed "s|\$| with preset $preset; see $log|"
  tail -n 100 "$log"
  return 1
}
