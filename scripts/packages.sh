#!/usr/bin/env bash
# packages.sh: the public packages that tests and the arena differentiate, as pyproject.toml pins
# them in its optional dependencies `test`.
set -euo pipefail
cd "$(dirname "$0")/.."
sed -n '/^test = \[/,/^\]/s/^ *"\(.*\)",$/\1/p' pyproject.toml
