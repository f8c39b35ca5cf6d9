"""The choice of the messages of a traced run that a figure draws: those connected with the anomaly by cause, not
nearness.

In order of importance:

1. every message of the shown operations, between their clients and the nodes;
2. the messages that these triggered among the nodes – the copies of a write, lost ones too – and the chain of messages
   that led to an answer, or to the moment at which an invariant broke;
3. other messages in the past of the answers or in the future of the operations: first those that came stale, then
   those that name the key, then rare kinds, such as votes, before frequent ones.

The first are always drawn. The second are drawn where they are not many times more than the figure has room for, and
the third as far as it has room. Heartbeats of the third are folded into a count, and so are all messages that are not
drawn. A stale message counts where it was sent and where it arrived. Pages and terminal use the same function."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from faultline.harness.history import OPEN, Row
from faultline.harness.run_record import MessageRecord
from faultline.reports.causality import FLUSH_US_MAX, HANDLING_US_MAX, Triggers, future_of, heartbeats_of, past_of
from faultline.reports.text import count

__all__ = [
    "LOOKED_AT_MAX",
    "MESSAGES_MAX",
    "_MOST_OF_AN_OPERATION",
    "Anomaly",
    "MessageChoice",
    "choose_messages",
    "message_end",
]

MESSAGES_MAX = 40
"""The number of messages that are drawn; more only when the shown operations have more."""
_MOST_OF_AN_OPERATION = 40
"""The messages drawn of an operation that was tried a thousand times: half of them the first, half the last."""
LOOKED_AT_MAX = 20_000
"""The number of messages above which only those near the beginnings and ends of operations are examined."""
_AROUND_US = 2_000_000
"""The time around the shown time that is searched for heartbeats: one is recognised by the others of its kind."""


@dataclass(frozen=True, slots=True)
class Anomaly:
    """The anomaly to explain: the shown operations, their time, and the node inside which a promise broke.

    `node` is that node and `moment_us` the moment it showed; None where the operations themselves show it.
    """

    rows: tuple[Row, ...]
    start_us: int
    stop_us: int
    moment_us: int = 0
    node: str | None = None
    key: str | None = None


@dataclass(frozen=True, slots=True)
class MessageChoice:
    """The messages drawn, in order of their sending, and the number of others of the shown time: sent, or come stale.

    `heartbeats` and `others` are not drawn; `heartbeats_lost` and `others_lost` are those of them that never arrived.
    """

    drawn: tuple[MessageRecord, ...] = ()
    heartbeats: int = 0
    heartbeats_lost: int = 0
    others: int = 0
    others_lost: int = 0

    @property
    def sent(self) -> int:
        """The number of messages that were sent in the shown time, or came stale in it."""
        return len(self.drawn) + self.heartbeats + self.others

    @property
    def left_out(self) -> str:
        """A sentence about the messages that are not drawn; '' when all are."""
        parts = [
            _counted(self.heartbeats, "heartbeat", self.heartbeats_lost),
            _counted(self.others, "other message" if self.heartbeats else "message", self.others_lost),
        ]
        told = " and ".join(part for part in parts if part)
        return f"{told} {'is' if self.heartbeats + self.others == 1 else 'are'} not drawn." if told else ""


def _counted(number: int, what: str, lost: int) -> str:
    return f"{count(number, what)}{f' ({lost:,} lost)' if lost else ''}" if number else ""


def message_end(process: int) -> str:
    """Return the name of a client on the network."""
    return f"client-{process}"


def choose_messages(
    messages: Sequence[MessageRecord],
    nodes: Sequence[str],
    anomaly: Anomaly,
    limit: int = MESSAGES_MAX,
    *,
    exact: bool = True,
) -> MessageChoice:
    """Return the messages to be drawn for `anomaly`, out of all `messages` of a run on `nodes`; about `limit` of
    them.

    `exact` says that steps at one moment belong together, as in the simulated world.
    """
    first_us, last_us = anomaly.start_us - _AROUND_US, anomaly.stop_us + _AROUND_US
    around = [message for message in messages if _is_of(message, first_us, last_us)]
    near = around if len(around) <= LOOKED_AT_MAX else _close_to_operations(around, anomaly)
    meanwhile = [message for message in around if _is_of(message, anomaly.start_us, anomaly.stop_us)]
    meant = [place for place, message in enumerate(near) if _is_of(message, anomaly.start_us, anomaly.stop_us)]
    if not meant:
        return MessageChoice(others=len(meanwhile), others_lost=_lost(meanwhile))
    triggers = Triggers(near, exact=exact)
    heartbeats = heartbeats_of(near, triggers, nodes)
    asked = _of_operations(near, meant, anomaly)
    ends = {*nodes, *(message_end(row.process) for row in anomaly.rows)}
    drawable = {place for place in meant if near[place].source in ends and near[place].target in ends}
    caused = triggers.before(anomaly.node, anomaly.moment_us) if anomaly.node else []
    # Where times are taken outside of the node, a copy that it sent before its answer may come by after it.
    caused += _copies(near, meant, anomaly, asked, 0 if exact else FLUSH_US_MAX)
    caused += _leading_to(near, triggers, anomaly, asked, set(nodes))
    caused += _triggered(near, triggers, heartbeats, anomaly, asked)
    steps = [place for place in dict.fromkeys(caused) if place in drawable]
    chosen = list(dict.fromkeys([*asked, *steps[: 3 * limit]]))
    if len(chosen) < limit:
        between = {place for place in drawable if near[place].source in nodes and near[place].target in nodes}
        related = _related(near, meant, anomaly)
        if not anomaly.rows:
            # Without operations the steps of the node itself are the story, such as the votes that it asked for.
            related |= {place for place in between if anomaly.node in (near[place].source, near[place].target)}
        chosen += _telling_first(near, related & between - set(chosen) - heartbeats, anomaly.key)[: limit - len(chosen)]
    drawn = set(chosen)
    folded = [near[place] for place in meant if place not in drawn and place in heartbeats]
    others = [near[place] for place in meant if place not in drawn and place not in heartbeats]
    return MessageChoice(
        drawn=tuple(near[place] for place in sorted(drawn, key=lambda place: (near[place].send_us, place))),
        heartbeats=len(folded),
        heartbeats_lost=_lost(folded),
        others=len(others) + len(meanwhile) - len(meant),
        others_lost=_lost(others) + _lost(meanwhile) - sum(near[place].receive_us < 0 for place in meant),
    )


def _is_of(message: MessageRecord, first_us: int, last_us: int) -> bool:
    """Return whether the message was sent in this time, or came stale in it."""
    return first_us <= message.send_us <= last_us or (message.stale and first_us <= message.receive_us <= last_us)


def _close_to_operations(messages: Sequence[MessageRecord], anomaly: Anomaly) -> list[MessageRecord]:
    """Return, for a very long time, the messages of clients, and those sent when an operation began, ended or broke."""
    clients = {message_end(row.process) for row in anomaly.rows}
    moments = {anomaly.moment_us, anomaly.stop_us}
    moments |= {time_us for row in anomaly.rows for time_us in (row.invoke_us, _end_us(row, anomaly))}
    slots = {time_us // _AROUND_US + step for time_us in moments for step in (-1, 0, 1)}
    return [
        message
        for message in messages
        if message.stale
        or message.send_us // _AROUND_US in slots
        or message.source in clients
        or message.target in clients
    ]


def _lost(messages: Iterable[MessageRecord]) -> int:
    return sum(message.receive_us < 0 for message in messages)


def _of_operations(near: Sequence[MessageRecord], meant: Sequence[int], anomaly: Anomaly) -> list[int]:
    """Return the places of the messages between the clients and the nodes while the shown operations lasted."""
    by_client: dict[str, list[int]] = {message_end(row.process): [] for row in anomaly.rows}
    for place in meant:
        for end in {near[place].source, near[place].target} & by_client.keys():
            by_client[end].append(place)
    found: dict[int, None] = {}
    for row in anomaly.rows:
        client, end_us = message_end(row.process), _end_us(row, anomaly)
        own = [place for place in by_client[client] if _belongs(near[place], client, row.invoke_us, end_us)]
        own.sort(key=lambda place: near[place].send_us)
        half = _MOST_OF_AN_OPERATION // 2
        found |= dict.fromkeys(own if len(own) <= 2 * half else [*own[:half], *own[-half:]])
    return list(found)


def _end_us(row: Row, anomaly: Anomaly) -> int:
    return max(row.invoke_us, anomaly.stop_us) if row.complete_index == OPEN else row.complete_us


def _belongs(message: MessageRecord, client: str, start_us: int, end_us: int) -> bool:
    """Return whether the message is of this operation: a client may send its next request at the moment of an
    answer."""
    if message.source == client:
        return start_us <= message.send_us < end_us or start_us == message.send_us == end_us
    return start_us <= message.send_us <= end_us or (message.stale and start_us <= message.receive_us <= end_us)


def _triggered(
    near: Sequence[MessageRecord], triggers: Triggers, heartbeats: set[int], anomaly: Anomaly, asked: Sequence[int]
) -> list[int]:
    """Return the messages that the operations' requests made the nodes send, directly and through each other."""
    clients = {message_end(row.process) for row in anomaly.rows}
    waiting = deque(place for place in asked if near[place].source in clients and near[place].receive_us >= 0)
    found: dict[int, None] = {}
    while waiting:
        message = near[waiting.popleft()]
        for place in triggers.after(message.target, message.receive_us):
            following = near[place]
            if place in found or place in heartbeats or _is_client(following.target):
                continue
            found[place] = None
            if following.receive_us >= 0:
                waiting.append(place)
    return list(found)


def _copies(
    near: Sequence[MessageRecord], meant: Sequence[int], anomaly: Anomaly, asked: Sequence[int], slack_us: int
) -> list[int]:
    """Return the messages with the key of an operation that a node, after its request, sent while it lasted.

    Those sent up to `slack_us` later are among them.
    """
    lasting: dict[str, list[tuple[int, int, str]]] = {}
    for row in anomaly.rows:
        for message in (near[place] for place in asked):
            is_request = message.source == message_end(row.process) and row.invoke_us <= message.send_us
            if is_request and message.send_us <= message.receive_us <= _end_us(row, anomaly) and row.key is not None:
                spans = lasting.setdefault(message.target, [])
                spans.append((message.receive_us, _end_us(row, anomaly), row.key))
    return [
        place
        for place in meant
        for start_us, stop_us, key in lasting.get(near[place].source, ())
        if start_us <= near[place].send_us <= stop_us + slack_us
        if key in near[place].summary and not _is_client(near[place].target)
    ]


def _leading_to(
    near: Sequence[MessageRecord], triggers: Triggers, anomaly: Anomaly, asked: Sequence[int], nodes: set[str]
) -> list[int]:
    """Return the chains of messages that led to the nodes' answers, and to the moment a node broke a promise.

    Where times are not exact any receipt may be a trigger, so a chain to an answer ends where its operation began.
    """
    answers = [near[place] for place in asked if near[place].source in nodes]
    moments = deque((answer.source, answer.send_us, _asked_us(answer, anomaly)) for answer in answers)
    if anomaly.node is not None:
        moments.appendleft((anomaly.node, anomaly.moment_us, anomaly.moment_us - HANDLING_US_MAX))
    found: dict[int, None] = {}
    while moments:
        process, moment_us, began_us = moments.popleft()
        since_us = anomaly.start_us if triggers.exact else max(began_us, anomaly.start_us)
        for place in triggers.before(process, moment_us):
            message = near[place]
            is_recent = message.stale or message.send_us >= since_us
            if place not in found and is_recent and not _is_client(message.source):
                found[place] = None
                moments.append((message.source, message.send_us, began_us))
    return list(found)


def _asked_us(answer: MessageRecord, anomaly: Anomaly) -> int:
    """Return the time at which the operation began that a node answered."""
    own = [row.invoke_us for row in anomaly.rows if message_end(row.process) == answer.target]
    return max((invoke_us for invoke_us in own if invoke_us <= answer.send_us), default=anomaly.start_us)


def _is_client(name: str) -> bool:
    return name.startswith("client-")


def _related(near: Sequence[MessageRecord], meant: Sequence[int], anomaly: Anomaly) -> set[int]:
    """Return the past of the last answer, or of the breach, and the future of the operations, within the shown time."""
    shown = [near[place] for place in meant]
    begins: dict[str, int] = {}
    for row in anomaly.rows:
        end = message_end(row.process)
        begins[end] = min(row.invoke_us, begins.get(end, row.invoke_us))
    last = {anomaly.node: anomaly.moment_us} if anomaly.node else {}
    answered = [row for row in anomaly.rows if row.complete_index != OPEN]
    if answered:
        row = max(answered, key=lambda row: row.complete_us)
        last[message_end(row.process)] = row.complete_us
    places = past_of(shown, last) | future_of(shown, begins)
    return {meant[place] for place in places}


def _telling_first(near: Sequence[MessageRecord], places: Iterable[int], key: str | None) -> list[int]:
    """Return `places`: stale messages first, then those that name the key, then rare kinds before frequent ones."""
    frequency = Counter(message.name for message in near)

    def rank(place: int) -> tuple[bool, bool, int, int, int]:
        message = near[place]
        has_no_key = key is None or key not in message.summary
        return not message.stale, has_no_key, frequency[message.name], message.send_us, place

    return sorted(places, key=rank)
