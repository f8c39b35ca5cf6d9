#!/usr/bin/env bash
# Writes requirements.lock: what pyproject.toml asks for, resolved and pinned, with the hashes of every file of each
# release, so that pip installs what was locked or nothing, on every platform and from every index.
#
#   tools/lock.sh             keeps the versions that are pinned, and adds and removes what pyproject.toml does
#   tools/lock.sh --upgrade   takes the newest versions that fit
#
# Arguments are pip-compile's. It runs in an environment of its own, and asks the index that pip is configured to ask.
set -euo pipefail
cd "$(dirname "$0")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

.venv/bin/python -m venv "$work/venv"
"$work/venv/bin/pip" install -qq --disable-pip-version-check pip-tools
cp requirements.lock "$work/compiled"
# The package itself is installed editable and without a hash; what builds it is locked with the rest.
printf 'hatchling\neditables\n' |
  "$work/venv/bin/pip-compile" --quiet --extra dev --unsafe-package faultline --strip-extras --generate-hashes \
    --no-header --no-annotate --no-emit-options --output-file "$work/compiled" "$@" pyproject.toml - 2>"$work/messages" || {
  cat "$work/messages" >&2
  exit 4
}
{
  echo '# Every dependency of Faultline and of its tests, pinned and hashed. Made by `make lock`; do not edit.'
  # What follows is pip-compile's advice to pin the package itself.
  sed '/^# WARNING/,$d' "$work/compiled" | sed -e :blank -e '/^\n*$/{$d;N;b blank' -e '}'
} >"$work/requirements.lock"
mv "$work/requirements.lock" requirements.lock
echo "lock: $(grep -c '==' requirements.lock) packages pinned, $(grep -c -- '--hash=' requirements.lock) hashes, in requirements.lock"
