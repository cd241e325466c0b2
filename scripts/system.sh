# What the machine must have, for scripts/install.sh.

PACKAGES="libmlir-22-dev mlir-22-tools llvm-22-dev llvm-22-tools clang-22 lld-22
  ninja-build cmake ccache libzstd-dev zlib1g-dev g++ make"

# install_system_packages [python]: apt packages that are missing, if any.
install_system_packages() {
  local packages=$PACKAGES missing="" package
  # A Python that apt installed needs its headers and venv from there as well.
  local python; python=$(command -v "${1:-python3}" || true)
  if [ -z "$python" ] || [[ $(readlink -f "$python") == /usr/bin/* ]]; then
    packages+=" python3 python3-dev python3-venv python3-pip"
  fi
  if ! command -v dpkg-query > /dev/null; then
    echo "not a Debian system: MLIR 22 (static), clang, lld, cmake and ninja are taken as they are"
    return
  fi
  for package in $packages; do
    dpkg-query -W -f '${Status}' "$package" 2> /dev/null | grep -q 'ok installed' ||
      missing+=" $package"
  done
  [ -z "$missing" ] && return
  echo "installing$missing"
  local sudo=""
  if [ "$(id -u)" != 0 ]; then
    command -v sudo > /dev/null || { echo "root is needed to install$missing" >&2; exit 1; }
    sudo=sudo
  fi
  $sudo apt-get update -qq
  # shellcheck disable=SC2086
  $sudo env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends $missing > /dev/null || {
    echo "apt could not install$missing; MLIR 22 is in LLVM's own apt repository" >&2
    exit 1
  }
}

# choose_python [python]: the interpreter to install into. Where the system
# keeps packages out of its own Python (PEP 668), that is .venv here.
choose_python() {
  local python=${1:-}
  if [ -z "$python" ]; then
    python=python3
    command -v python > /dev/null && python=python
  fi
  if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))'; then
    echo "Python 3.10 or newer is needed; $python is $("$python" --version)" >&2
    return 1
  fi
  if "$python" -c '
import os, sys, sysconfig
managed = os.path.exists(os.path.join(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED"))
sys.exit(sys.prefix != sys.base_prefix or not managed)'; then
    [ -x .venv/bin/python ] || "$python" -m venv .venv
    echo "the system's Python is managed by apt: using .venv (source .venv/bin/activate)" >&2
    python=.venv/bin/python
  fi
  # Absolute, and past version-manager shims, which follow the current folder.
  "$python" -c 'import sys; print(sys.executable)'
}
