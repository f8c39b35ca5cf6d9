"""The words of a transcript for messages, events and logs. `3/1` is the entry at index 3, made in generation 1."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from faultline.systems_under_test.patterns.data_replication import collecting_election as collecting
from faultline.systems_under_test.patterns.data_replication import leader_and_followers as election
from faultline.systems_under_test.patterns.data_replication import pulled_log as pulled
from faultline.systems_under_test.patterns.data_replication import raft_election as raft
from faultline.systems_under_test.patterns.data_replication import replicated_log as replication
from faultline.systems_under_test.patterns.data_replication import snapshot_installation as installing
from faultline.systems_under_test.patterns.data_replication.leader_reads import LeaseReadServed
from faultline.systems_under_test.patterns.data_replication.low_water_mark import LogCleaned
from faultline.systems_under_test.patterns.data_replication.write_ahead_log import NO_OP, LogEntry
from faultline.systems_under_test.reference.consistent_core.forwarding import ForwardedAnswer, ForwardedRequest
from faultline.systems_under_test.reference.shared import client_messages as client_side
from faultline.systems_under_test.reference.shared.key_commands import Transfer
from faultline.systems_under_test.reference.shared.trace_events import (
    EntryApplied,
    SnapshotTaken,
    StateRestored,
)

__all__ = [
    "command_words",
    "entry_words",
    "event_words",
    "kinds_of",
    "message_words",
    "stock_words",
    "tag_words",
]

_COMMANDS: msgspec.msgpack.Decoder[client_side.LoggedCommand] = msgspec.msgpack.Decoder(client_side.LoggedCommand)


def kinds_of(message: Any) -> set[str]:
    """The names under which a filter finds `message`: its tag, and `entries` or `heartbeat`."""
    names = {str(type(message).__struct_config__.tag)}
    if isinstance(message, replication.ReplicationRequest):
        names.add("entries" if message.entries else "heartbeat")
    return names


def entry_words(entry: LogEntry) -> str:
    """An entry: index, generation and what it says."""
    return f"{entry.index}/{entry.generation} {_command_words(entry)}"


def _command_words(entry: LogEntry) -> str:
    if entry.kind == NO_OP or not entry.data:
        return "no-op"
    logged = _COMMANDS.decode(entry.data)
    if isinstance(logged, client_side.ClientCommand):
        return command_words(logged.command)
    return tag_words(logged)


def command_words(command: Any) -> str:
    """A client's command."""
    if isinstance(command, Transfer):
        return f"move {command.quantity} {command.source}→{command.target}"
    if isinstance(command, client_side.SetValue) and isinstance(command.value, dict):
        return f"set {command.key}: {stock_words(command.value)}"
    if isinstance(command, client_side.SetValue):
        return f"set {command.key}={command.value}"
    if isinstance(command, client_side.GetValue):
        return f"get {command.key}"
    if isinstance(command, client_side.CompareAndSet):
        return f"cas {command.key}={command.expected}→{command.value}"
    return tag_words(command)


def stock_words(stock: dict[str, int]) -> str:
    """The widgets of each location."""
    return ", ".join(f"{location} {count}" for location, count in stock.items())


def _forwarded_words(message: ForwardedRequest) -> str:
    return f"passes on for {message.client}: {_client_request_words(message.request)}"


def _forwarded_answer_words(message: ForwardedAnswer) -> str:
    return f"answer for {message.client}: {_MESSAGES.get(type(message.answer), tag_words)(message.answer)}"


def _client_request_words(request: Any) -> str:
    if isinstance(request, client_side.ClientRequest):
        return f"#{request.request_number} {command_words(request.command)}"
    return tag_words(request)


def tag_words(message: Any) -> str:
    """A message by its tag, with its fields: the words for a kind without words of its own."""
    fields = " ".join(f"{name}={value}" for name, value in msgspec.structs.asdict(message).items())
    return f"{type(message).__struct_config__.tag} {fields}".rstrip()


def _request_words(request: replication.ReplicationRequest) -> str:
    after = f"after {request.prev_log_index}/{request.prev_log_generation}"
    if not request.entries:
        return f"heartbeat of generation {request.generation} {after}, mark {request.high_water_mark}"
    new = ", ".join(map(entry_words, request.entries))
    return f"entries of generation {request.generation} {after}, mark {request.high_water_mark}: {new}"


def _answer_words(answer: replication.ReplicationResponse) -> str:
    if answer.succeeded:
        return f"has everything up to {answer.replicated_log_index}"
    return f"refuses in generation {answer.generation}, try after {answer.replicated_log_index}"


def _fetch_words(fetch: pulled.FetchRequest) -> str:
    return f"fetch what follows {fetch.after_index}/{fetch.after_generation}"


def _fetched_words(fetched: pulled.FetchResponse) -> str:
    new = ", ".join(map(entry_words, fetched.entries)) or "nothing new"
    return f"after {fetched.after_index}/{fetched.after_generation}, mark {fetched.high_water_mark}: {new}"


def _diverged_words(answer: pulled.FetchDiverged) -> str:
    here = f"{answer.index}/{answer.entry_generation}"
    return f"has no {answer.after_index}/{answer.after_generation}; try {here}"


def _install_words(request: installing.InstallSnapshotRequest) -> str:
    last = request.offset + len(request.data)
    return f"snapshot of entry {request.snapshot_index}, bytes {request.offset} to {last} of {request.size}"


def _installed_words(answer: installing.InstallSnapshotResponse) -> str:
    if answer.installed:
        return f"has the snapshot of entry {answer.snapshot_index}"
    return f"wants byte {answer.next_offset} of the snapshot of entry {answer.snapshot_index}"


def _vote_request_words(request: raft.VoteRequest | raft.PreVoteRequest) -> str:
    ask = "vote for me" if isinstance(request, raft.VoteRequest) else "would you vote for me"
    last = f"{request.last_log_entry_index}/{request.last_log_entry_generation}"
    return f"{ask} in generation {request.generation}, my log ends at {last}"


def _vote_words(vote: raft.VoteResponse | raft.PreVoteResponse) -> str:
    words = "granted" if vote.granted else "refused"
    return f"{'' if isinstance(vote, raft.VoteResponse) else 'pre-'}vote {words} in generation {vote.generation}"


def _collected_words(answer: collecting.CollectedEntries) -> str:
    entries = ", ".join(map(entry_words, answer.entries)) or "nothing"
    return f"in generation {answer.generation} has after {answer.after_index}: {entries}"


def _response_words(response: client_side.ClientResponse) -> str:
    value = stock_words(response.value) if isinstance(response.value, dict) else response.value
    result = response.error or ("ok" if value is None else value)
    return f"#{response.request_number} {result}"


def _redirect_words(redirect: client_side.RedirectToLeader) -> str:
    return f"#{redirect.correlation_id} ask {redirect.leader_id or 'another server'}"


_MESSAGES: dict[type, Callable[[Any], str]] = {
    replication.ReplicationRequest: _request_words,
    replication.ReplicationResponse: _answer_words,
    pulled.FetchRequest: _fetch_words,
    pulled.FetchResponse: _fetched_words,
    pulled.FetchDiverged: _diverged_words,
    installing.InstallSnapshotRequest: _install_words,
    installing.InstallSnapshotResponse: _installed_words,
    raft.VoteRequest: _vote_request_words,
    raft.PreVoteRequest: _vote_request_words,
    raft.VoteResponse: _vote_words,
    collecting.CollectEntries: lambda ask: f"what have you after {ask.after_index}, in generation {ask.generation}?",
    collecting.CollectedEntries: _collected_words,
    raft.PreVoteResponse: _vote_words,
    client_side.ClientResponse: _response_words,
    client_side.RedirectToLeader: _redirect_words,
    client_side.ClientRequest: _client_request_words,
    ForwardedRequest: _forwarded_words,
    ForwardedAnswer: _forwarded_answer_words,
}


def message_words(source: str, target: str, message: Any) -> str:
    """A message on its way."""
    return f"{source} → {target}: {_MESSAGES.get(type(message), tag_words)(message)}"


def _mark_words(node: str, event: replication.HighWaterMarkAdvanced) -> str:
    return f"{node} moves its mark to {event.value}"


def _cut_words(node: str, event: replication.EntriesTruncated) -> str:
    return f"{node} cuts off {event.from_index} to {event.last_index}"


def _restored_words(node: str, event: StateRestored) -> str:
    how = "installs" if event.installed else "starts from"
    return f"{node} {how} the snapshot of entry {event.index}"


def _cleaned_words(node: str, event: LogCleaned) -> str | None:
    return f"{node} discards its log up to {event.compacted_index}" if event.deleted else None


_CHANGES: dict[type, Callable[[str, Any], str | None]] = {
    election.BecameLeader: lambda node, event: f"{node} leads generation {event.generation}",
    election.SteppedDown: lambda node, _: f"{node} leads no longer",
    replication.EntriesTruncated: _cut_words,
    SnapshotTaken: lambda node, event: f"{node} takes a snapshot of entry {event.index}",
    StateRestored: _restored_words,
    LogCleaned: _cleaned_words,
    LeaseReadServed: lambda node, event: f"{node} answers under its lease of generation {event.generation}",
}

_STEPS: dict[type, Callable[[str, Any], str | None]] = {
    election.GenerationAdopted: lambda node, event: f"{node} moves to generation {event.generation}",
    collecting.EntriesStampedAnew: lambda node, event: (
        f"{node} stamps entries from {event.first_index} on with generation {event.generation}"
    ),
    replication.HighWaterMarkAdvanced: _mark_words,
    EntryApplied: lambda node, event: f"{node} applies {event.index}/{event.generation}",
}


def event_words(node: str, event: Any, *, in_brief: bool) -> str | None:
    """Return words for the event of `node`, or None for one without a line.

    In brief, only changes of leadership, cuts and lease reads have one."""
    words = _CHANGES.get(type(event)) or (None if in_brief else _STEPS.get(type(event)))
    return None if words is None else words(node, event)
