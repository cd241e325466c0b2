#!/usr/bin/env bash
# idle_passes.sh FILE: fails if one of our passes has changed nothing in the runs
# that FILE is the record of (TRITON_AUTODIFF_PASSES).
set -euo pipefail
cd "$(dirname "$0")/.."

names() { cut -d'"' -f2 | sort -u; }
# Those that verify only find faults, and only the command line differentiates a derived kernel again.
idle=$(comm -23 \
  <(grep -rhoE 'Pass<"[a-z-]+"' third_party/autodiff/include | names | grep -vE 'verify|adopt-kernel') \
  <(sed -n 's/^changed //p' "$1" | sort -u))
[ -z "$idle" ] || { echo "No test lets these passes change anything:" $idle >&2; exit 1; }
