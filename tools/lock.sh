#!/usr/bin/env bash
# Writes requirements.lock: what pyproject.toml asks for, resolved and pinned for every platform and every Python it
# allows, with the hashes of every file of each release, so that pip installs what was locked or nothing.
#
#   tools/lock.sh             keeps the versions that are pinned, and adds and removes what pyproject.toml does
#   tools/lock.sh --upgrade   takes the newest versions that fit
#
# Arguments are those of `uv pip compile`, which comes into an environment of its own and asks the index that pip asks.
set -euo pipefail
cd "$(dirname "$0")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

.venv/bin/python -m venv "$work/venv"
"$work/venv/bin/pip" install -qq --disable-pip-version-check uv
index=$("$work/venv/bin/pip" config get global.index-url 2>/dev/null) || index=
cp requirements.lock "$work/requirements.lock"
# The package itself is installed editable and without a hash; what builds it is locked with the rest.
printf 'hatchling\neditables\n' |
  "$work/venv/bin/uv" pip compile --quiet --universal --python-version 3.11 --extra dev --no-emit-package faultline \
    --generate-hashes --strip-extras --no-header --no-annotate ${index:+--default-index "$index"} \
    --output-file "$work/requirements.lock" "$@" pyproject.toml -
{
  echo '# Every dependency of Faultline and of its tests, pinned and hashed. Made by `make lock`; do not edit.'
  cat "$work/requirements.lock"
} >"$work/headed.lock"
mv "$work/headed.lock" requirements.lock
echo "lock: $(grep -c '==' requirements.lock) packages pinned, $(grep -c -- '--hash=' requirements.lock) hashes, in requirements.lock"
