"""The player of stories about two-phase commit, on `transactional-kv`."""

from __future__ import annotations

from typing import Any

from faultline.story.log_words import stock_words, tag_words
from faultline.story.story_player import StoryPlayer
from faultline.story.transaction_cluster import REFUSED, WAITS, Transaction, TransactionCluster
from faultline.systems_under_test.patterns.data_partitioning import transaction_messages as phases
from faultline.systems_under_test.reference.transactional_kv.options import host_of
from faultline.systems_under_test.reference.transactions.messages import Reply
from faultline.testing.hand_cranked import HandCrankedCluster
from faultline.workloads.transfer import OPENING

__all__ = ["TransactionPlayer"]

_PHASES: dict[type, str] = {
    phases.PrepareTransaction: "prepare",
    phases.CommitTransaction: "commit",
    phases.RollBackTransaction: "roll back",
    phases.Acknowledged: "done",
    phases.Inquiry: "how did it end?",
}


class TransactionPlayer(StoryPlayer):
    """One scene being played, with a transaction for each client."""

    cluster_type = TransactionCluster

    def __init__(self) -> None:
        super().__init__()
        self._transactions: dict[str, Transaction] = {}

    def begin(self, cluster: HandCrankedCluster) -> None:
        self._transactions.clear()
        super().begin(cluster)

    def message_words(self, source: str, target: str, message: Any) -> str:
        if isinstance(message, phases.Vote):
            return f"{source} → {target}: {'yes' if message.yes else 'no'}"
        if isinstance(message, Reply):
            said = {True: "committed", False: "rolled back"}.get(message.value, message.value)
            return f"{source} → {target}: #{message.number} {message.error or said}"
        return f"{source} → {target}: {_PHASES.get(type(message)) or tag_words(message)}"

    def do_stock(self, words: list[str]) -> None:
        """stock

        Write the 183 widgets, each location where it is kept; print where that is.
        """
        self.exactly(0, words, "stock")
        stock = Transaction(self.cluster, "stock")
        for location, count in OPENING.items():
            stock.write(location.capitalize(), count)
        assert stock.commit() is True
        places = {location.capitalize(): host_of(self.cluster.members, location.capitalize()) for location in OPENING}
        self.lines.append(", ".join(f"{location} on {node}" for location, node in places.items()))

    def do_transfer(self, words: list[str]) -> None:
        """transfer CLIENT AMOUNT FROM TO

        Read both locations and write both in one transaction; do not commit yet.
        """
        client, amount, source, target = self.exactly(4, words, "transfer")
        transaction = Transaction(self.cluster, client)
        counts = {place: transaction.read(place) for place in (source, target)}
        if WAITS in counts.values() or REFUSED in counts.values():
            self.lines.append(f"{client} has no lock: {', '.join(f'{k} {v}' for k, v in counts.items())}")
            return
        transaction.write(source, counts[source] - int(amount))
        transaction.write(target, counts[target] + int(amount))
        self._transactions[client] = transaction
        self.lines.append(f"{transaction.coordinator} coordinates for {client}")

    def do_commit(self, words: list[str]) -> None:
        """commit CLIENT

        Ask the coordinator to commit; deliver nothing.
        """
        (client,) = self.exactly(1, words, "commit")
        self._transactions[client].ask_commit()

    def do_outcome(self, words: list[str]) -> None:
        """outcome CLIENT

        Print what the coordinator has answered, if anything.
        """
        (client,) = self.exactly(1, words, "outcome")
        outcome = self._transactions[client].outcome()
        said = {True: "committed", False: "rolled back", None: "rolled back"}.get(outcome, str(outcome))
        self.lines.append(f"{client}: {said}")

    def do_show(self, words: list[str]) -> None:
        """show widgets|messages|breaches [NODE …]

        Print the committed counts, what is under way, which invariants broke.
        """
        if words[:1] != ["widgets"]:
            super().do_show(words)
            return
        counts: dict[str, int] = self.cluster.values_now()
        named = {place: counts[place] for place in map(str.capitalize, OPENING) if place in counts}
        self.lines.append(f"{stock_words(named)}; {sum(named.values())} in all")
