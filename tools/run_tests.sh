#!/usr/bin/env bash
# Runs the tests, and asks last whether they left anything of ours on this machine.
#
#   tools/run_tests.sh              all of them: what starts nodes, stores and Spark one at a time, since their faults
#                                   happen in real time; beside it, with the lowest priority, what only computes
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
  # What starts nodes waits most of its time. What computes fills that time, and yields to it. It is in a file until
  # the other part has ended, so that the two do not mix. A background job of a script ignores Ctrl-C: it is told.
  log=$(mktemp)
  echo 'test: in the background, shown afterwards: pytest -m "not real and not spark"'
  nice -n 19 .venv/bin/python -m pytest --numprocesses=auto --dist=worksteal -m 'not real and not spark' >"$log" 2>&1 &
  computing=$!
  trap 'kill "$computing" 2>/dev/null; rm -f "$log"' EXIT
  part pytest -m 'real or spark'
  tail --lines=+1 --follow --pid="$computing" "$log"
  wait "$computing" || status=1
fi
echo 'test: is anything of ours left on this machine?'
.venv/bin/python tools/nothing_left.py || status=1
exit "$status"
