"""The store as Faultline sees it: the start of a member, the question for its role, its clients, and its promise."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from typing import ClassVar

from faultline import ForeignAnswer, NodeStatus, OptionDescription, RealStore, StorePlace
from registers.client import CLIENT_PORT, Line, Refusal, RegistersClient

__all__ = ["PySyncObj"]


class PySyncObj(RealStore):
    """One process with PySyncObj on each host."""

    name = "pysyncobj"
    promise = "each key is a linearizable register that outlives kills"
    summary = "registers on PySyncObj, a Raft library from PyPI; reads go through the log"
    functions = ("read", "write", "cas")
    options: ClassVar[Mapping[str, OptionDescription]] = {
        "journal": OptionDescription(
            default="on",
            choices=("on", "off"),
            summary="off, PySyncObj's default: the log is kept in memory only, and killing all members loses it",
        ),
        "python": OptionDescription(
            default="python3", is_text=True, summary="the Python on the hosts for which PySyncObj is installed"
        ),
    }
    programs: ClassVar[Mapping[str, str]] = {}
    up_port = 4321
    """The port on which PySyncObj listens for the other members as soon as it runs."""
    client_port = CLIENT_PORT

    def files(self, place: StorePlace) -> Mapping[str, str]:
        """Return the program itself; a store that is installed on the hosts would return its configuration."""
        return {"server.py": (resources.files("registers") / "server.py").read_text("utf-8")}

    def preparation(self, place: StorePlace) -> str:
        """Make the folder of the journal, and fail early on a host without PySyncObj."""
        return f"mkdir -p data && {place.options['python']} -c 'import pysyncobj'"

    def command(self, place: StorePlace) -> list[str]:
        """Return the member's command line; the same for the first start and each later one."""
        journal = ["--journal", f"{place.data_folder}/journal"] if place.options["journal"] == "on" else []
        others = (address for name, address in place.addresses.items() if name != place.node)
        return [place.options["python"], "server.py", *journal, place.address, *others]

    def status(self, address: str, timeout_s: float) -> NodeStatus:
        """Return the status that the member at `address` reports. Raise OSError when it does not answer."""
        line = Line(address, timeout_s)
        try:
            role, generation = line.ask("status")
        except (Refusal, ForeignAnswer, ValueError) as error:
            raise OSError(f"no status: {error!r}") from error
        finally:
            line.close()
        return NodeStatus(role=role, generation=generation)

    def store_client(
        self, address_of: Callable[[str], str], members: Sequence[str], node: str, options: Mapping[str, str]
    ) -> RegistersClient:
        """Return a client that talks to `node` first."""
        return RegistersClient(address_of, members, node)
