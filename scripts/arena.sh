#!/usr/bin/env bash
# arena.sh judge|orders|atomics|time FOLDER [option ...]: on a machine with a GPU and PyTorch, install what
# `make carry carry-packages PYTHON=python3.12` has put into .wheels, and run a part of the arena
# in less than ten minutes. Rows come into FOLDER, in one file for each command.
#
#   scripts/arena.sh judge "$OUT"                  as far as it gets; earlier rows, if any:
#   scripts/arena.sh judge "$OUT" --done results   those of results/judged.jsonl are left out
#   scripts/arena.sh judge "$OUT" --shard 0/2      every second case
#   scripts/arena.sh orders "$OUT"                 tangents and second derivatives
#   scripts/arena.sh atomics "$OUT"                which gradients meet in atomics
#   scripts/arena.sh time "$OUT"                   compiles what is not compiled, then measures
#
# Compiled kernels stay in build/arena-cache, so that `time` after `judge` on one machine is quick.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
command=$1 folder=$2
shift 2

"$python" -c 'import torch; assert torch.cuda.is_available(), "no GPU here"; print(torch.cuda.get_device_name())'
"$python" -m pip install --quiet --no-index --no-deps --force-reinstall \
  --find-links .wheels triton-autodiff
"$python" -m pip install --quiet --no-index --no-deps --find-links .wheels \
  liger-kernel flash-linear-attention fla-core einops packaging
export PYTHONPATH=benchmarks
exec "$python" -m arena "$command" --out "$folder" \
  --jobs "${ARENA_JOBS:-14}" --seconds "${ARENA_SECONDS:-530}" --limit 240 "$@"
