#!/usr/bin/env bash
# Runs the tests, and asks last whether they left anything of ours on this machine.
#
#   tools/run_tests.sh              all of them: first what starts nodes, stores and Spark, one at a time, since their
#                                   faults happen in real time; then what only computes, on every core
#   tools/run_tests.sh ARGUMENT...  those that the arguments of pytest choose, one at a time
#
# Every part is run, whatever came of the one before; fails when any part fails, as it does when nothing was collected.
set -uo pipefail
cd "$(dirname "$0")/.."

status=0

# Runs its arguments after saying them.
part() {
  echo "test: $*"
  .venv/bin/python -m "$@" || status=1
}

if [ $# -gt 0 ]; then
  part pytest "$@"
else
  part pytest -m 'real or spark'
  part pytest --numprocesses=auto --dist=worksteal -m 'not real and not spark'
fi
echo 'test: is anything of ours left on this machine?'
.venv/bin/python tools/nothing_left.py || status=1
exit "$status"
