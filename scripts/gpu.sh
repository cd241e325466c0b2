#!/usr/bin/env bash
# gpu.sh: on a machine with a GPU and PyTorch, install the carried wheel
# (`make carry PYTHON=python3.12` made it), run the tests, then the benchmarks.
# Arguments go to pytest; GPU_BENCH=0 leaves the benchmarks out.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}

"$python" -c 'import torch; assert torch.cuda.is_available(), "no GPU here"; print(torch.cuda.get_device_name())'
"$python" -m pip install --quiet --no-index --no-deps --force-reinstall \
  --find-links .wheels triton-autodiff
"$python" python/examples/quickstart.py
workers=()
if "$python" -c 'import xdist' 2> /dev/null; then
  workers=(-n "$(($(nproc) < 16 ? $(nproc) : 16))" --dist worksteal)
fi
status=0
"$python" -m pytest -q -rs "${workers[@]}" "${@:-python/test}" || status=$?
if [ "${GPU_BENCH:-1}" != 0 ]; then
  "$python" benchmarks/run.py || status=$?
  "$python" benchmarks/overhead.py || status=$?
fi
exit $status
