#!/usr/bin/env bash
# Writes requirements.lock: what pyproject.toml asks for, resolved in an empty environment and pinned.
set -euo pipefail
cd "$(dirname "$0")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

.venv/bin/python -m venv "$work/venv"
"$work/venv/bin/pip" install -qq --disable-pip-version-check '.[dev]' hatchling editables
{
  echo '# Every dependency of Faultline and of its tests, pinned. Made by `make lock`; do not edit.'
  "$work/venv/bin/pip" freeze --exclude faultline
} >"$work/requirements.lock"
mv "$work/requirements.lock" requirements.lock
echo "lock: $(grep -c '==' requirements.lock) packages pinned in requirements.lock"
