# environment.sh: a virtual environment with packages from PyPI, made once for all trees of this user. Sourced by a script
# that has the name of the environment. The script writes the function install_packages, and ends with
#
#     environment FOLDER "$@"
#
# which prints the Python of the environment, or ends with 1 if it is not there; with the word fetch it makes it first.
# shellcheck shell=bash
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
name=$(basename "$0")
seconds=900 # for one download
python=${HVD_PYTHON:-python3}
# shellcheck disable=SC2034 # for the scripts
minor=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])') || die "$name: there is no $python"

from_pypi() { # WORDS OF PIP INSTALL...
  timeout "$seconds" "$folder/bin/python" -m pip install -q --disable-pip-version-check "$@" >&2 ||
    die "$name: PyPI has not given $*; see above, and try it again"
}

# PyTorch is that of scripts/torch: pip finds it by the file torch.pth, and fetches no second one.
with_torch() {
  local torch
  torch=$(scripts/torch) || die "$name: PyTorch is missing; run ./dev setup torch first"
  (cd "$folder"/lib/python3*/site-packages && printf '%s\n' "$torch"/lib/python3*/site-packages >torch.pth)
}

# The folder is made in its place, as an environment cannot be moved. The file complete says that it is whole; a run that
# was broken off begins anew.
make_environment() {
  mkdir -p "${folder%/*}"
  exec {lock}>"$folder.lock"
  flock -w "$seconds" "$lock" || die "$name: another run has been at work in $folder for $seconds s; end it first"
  [ ! -e "$folder/complete" ] || return 0
  rm -rf "$folder"
  "$python" -m venv "$folder" >&2 ||
    die "$name: $(command -v "$python") makes no virtual environment; install python3-venv"
  install_packages
  : >"$folder/complete"
}

environment() { # FOLDER [fetch]
  folder=${HVD_CACHE:-$HOME/.cache/hvd-elastic}/$1
  if [ "${2:-}" = fetch ] && [ ! -e "$folder/complete" ]; then make_environment; fi
  [ -e "$folder/complete" ] || exit 1
  echo "$folder/bin/python"
}
