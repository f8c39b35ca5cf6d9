"""The processes of the member of a store that runs on this host, found anew each time they are asked for."""

from __future__ import annotations

from faultline.harness.world.hosts.agent.freezing import state_of
from faultline.harness.world.hosts.processes.supervisor import descendants

__all__ = ["Member"]

_ENDED = ("Z", "X")


class Member:
    """All processes under the one whose number is in `pid_file`, and that one itself unless it is a supervisor.

    The file is read each time, so that a member which was started anew is found without being told. Between its end and
    its next start the number in the file belongs to no process: the kernel gives it out again only after all others.
    """

    def __init__(self, pid_file: str, *, supervisor: bool) -> None:
        self._pid_file = pid_file
        self._supervisor = supervisor

    def processes(self) -> list[int]:
        """Return the numbers of its processes, parents first; none while the member does not run."""
        try:
            with open(self._pid_file) as file:
                root = int(file.read())
        except (OSError, ValueError):
            return []
        found = descendants(root) if self._supervisor else [root, *descendants(root)]
        return [pid for pid in found if state_of(pid) not in _ENDED]
