#!/usr/bin/env bash
# install.sh [python] [triton version]: everything from a bare machine to a
# differentiated kernel. Installs only what is missing.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/system.sh

wanted_python=${1:-}
triton=${2:-}

install_system_packages "$wanted_python"
python=$(choose_python "$wanted_python")
mkdir -p build
echo "$python" > build/python
echo "installing into $("$python" -c 'import sys; print(sys.prefix)')"

pip() { "$python" -m pip install --quiet --disable-pip-version-check "$@"; }
has() { "$python" -c "from importlib.metadata import version; version('$1')" 2> /dev/null; }

pip 'setuptools>=77' wheel 'pybind11>=2.12' numpy lit pytest pytest-xdist hypothesis ruff mypy
has torch || pip torch==2.13.0
if [ -n "$triton" ]; then
  pip "triton==$triton"
elif ! has triton; then
  pip 'triton>=3.6,<3.10'
fi

"$python" -m pip install --quiet --disable-pip-version-check \
  --no-build-isolation --no-deps --force-reinstall .

# Other people's kernels, which tests differentiate; their dependencies could replace torch.
# shellcheck disable=SC2046
pip --no-deps $(scripts/packages.sh)

"$python" python/examples/quickstart.py
