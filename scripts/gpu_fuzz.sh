#!/usr/bin/env bash
# gpu_fuzz.sh SEED [N [OPTIONS]]: on a machine with a GPU and PyTorch, install the carried wheel
# (`make carry PYTHON=python3.12` made it) and check N random programs there, as many as MINUTES
# allow. Results are in OUT, a line for each program, and the first failing ones as scripts.
# `--shard I --of K` takes a part of the N; `--done FOLDER` leaves out what results there are.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
seed=$1 count=${2:-5000}
shift $(($# < 2 ? $# : 2))

"$python" -c 'import torch; assert torch.cuda.is_available(), "no GPU here"; print(torch.cuda.get_device_name())'
"$python" -m pip install --quiet --no-index --no-deps --force-reinstall \
  --find-links .wheels triton-autodiff
PYTHONPATH=python/test exec "$python" -m fuzz.campaign "$count" --seed "$seed" --device cuda \
  --jobs "${JOBS:-$(($(nproc) > 2 ? $(nproc) - 2 : 1))}" --seconds "$((${MINUTES:-8} * 60))" \
  --out "${OUT:-build/fuzz}" --most 5 --shrink 60 "$@"
