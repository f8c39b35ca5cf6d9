"""consistent-core as the harness sees it: options, planted bugs, messages, sessions, invariants."""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec
import pytest

from faultline.harness.errors import UsageError
from faultline.harness.invariant import Breach
from faultline.harness.system import NodeSystem
from faultline.systems_under_test.patterns.data_replication.idempotent_receiver import (
    ClientSessions,
    RequestDiscarded,
    UnknownSession,
)
from faultline.systems_under_test.patterns.data_replication.leader_and_followers import (
    BecameLeader,
    CandidateSeen,
    GenerationAdopted,
    LeaderSuspected,
    OldGenerationFollowed,
    VoteCounted,
)
from faultline.systems_under_test.patterns.data_replication.leader_reads import LeaseReadServed
from faultline.systems_under_test.patterns.data_replication.replicated_log import (
    EntriesTruncated,
    HighWaterMarkAdvanced,
    PipelineDeepened,
    ReplicationRequest,
)
from faultline.systems_under_test.patterns.data_replication.write_ahead_log import DATA, LogEntry
from faultline.systems_under_test.reference.consistent_core.options import OPTIONS, SETTINGS, CoreSettings
from faultline.systems_under_test.reference.consistent_core.parts import CoreParts
from faultline.systems_under_test.reference.consistent_core.planted_bugs import BUGS
from faultline.systems_under_test.reference.consistent_core.system import ConsistentCore
from faultline.systems_under_test.reference.raft.append_batches import BatchAppended
from faultline.systems_under_test.reference.raft.client import KeyValueClient
from faultline.systems_under_test.reference.raft.invariants.agreement import raft_invariants
from faultline.systems_under_test.reference.raft.invariants.replicated_log import (
    REPLICATED_LOG_INVARIANTS,
)
from faultline.systems_under_test.reference.raft.invariants.sessions import LiveSessionsStay
from faultline.systems_under_test.reference.raft.invariants.storage import STORAGE_INVARIANTS
from faultline.systems_under_test.reference.raft.key_value_server import KeyValueServer
from faultline.systems_under_test.reference.raft.messages import RAFT_MESSAGES
from faultline.systems_under_test.reference.raft.settings import RaftSettings
from faultline.systems_under_test.reference.shared.client_messages import (
    ClientRequest,
    CompareAndSet,
    SetValue,
)
from faultline.systems_under_test.reference.shared.trace_events import (
    AnsweredWithoutLeading,
    DuplicateAnswered,
    EntryApplied,
    NodeStarted,
    SessionsEnded,
    SessionsSeen,
)


def test_the_system_fulfils_the_protocol() -> None:
    system: NodeSystem = ConsistentCore()
    assert system.name == "consistent-core"
    assert set(system.planted_bugs) == set(BUGS.planted_bugs)


def test_the_defaults_are_usable_and_in_microseconds() -> None:
    settings = RaftSettings.read({})
    assert settings.heartbeat_interval_us == 50_000
    assert settings.election_timeout_us == 250_000
    assert settings.read_mode == "read-index"
    assert settings.pre_vote


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"colour": "red"}, "no option 'colour'"),
        ({"read_mode": "fast"}, "cannot be 'fast'"),
        ({"batch_entries_max": "0"}, "from 1"),
        ({"in_flight_max": "many"}, "whole number"),
        ({"heartbeat_interval_ms": "200"}, "room to lose one"),
        ({"read_mode": "leader-lease", "leader_lease_ms": "250"}, "before a new leader"),
        ({"request_timeout_ms": "2000"}, "give up before"),
        ({"batch_size_bytes": "63"}, "could not hold the registration"),
        ({"batch_linger_ms": "300"}, "before a batch that lingers"),
        ({"batch_linger_ms": "-1"}, "whole number"),
    ],
)
def test_unusable_options_are_refused_with_a_next_step(options: dict[str, str], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint) as refusal:
        CoreSettings.read(options)
    assert refusal.value.next_step


def test_a_lease_above_the_election_timeout_is_harmless_while_leases_are_not_used() -> None:
    assert RaftSettings.read({"leader_lease_ms": "900"}).leader_lease_us == 900_000


def test_without_planted_bugs_a_node_is_built_from_the_correct_parts() -> None:
    assert BUGS.parts(()) == CoreParts()


def test_an_unknown_planted_bug_is_refused_by_name() -> None:
    with pytest.raises(UsageError, match="no planted bug 'of-my-own'"):
        BUGS.parts(("of-my-own",))


IN_SEVERAL_PARTS = ("plain-prefix", "history-on-the-leader-only", "replay-to-all", "stale-read")


@pytest.mark.parametrize("name", sorted(BUGS.planted_bugs))
def test_each_planted_bug_changes_one_part_and_forces_only_options_that_exist(name: str) -> None:
    changed = changed_fields(BUGS.parts((name,)), CoreParts())
    changed += ["client"] * (BUGS.client(KeyValueClient, (name,)) is not KeyValueClient)
    changed += ["node"] * (BUGS.node(KeyValueServer, (name,)) is not KeyValueServer)
    # The log has two forms, pushed and pulled, and a bug of the log is in both; a few bugs take several changes.
    assert changed == ["replicated_log", "pulled_log"] or len(changed) == 1 or name in IN_SEVERAL_PARTS
    assert 1 <= len(changed) <= 3
    options = BUGS.planted_bugs[name].options
    assert set(options) <= set(OPTIONS | SETTINGS)
    CoreSettings.read(options)


def changed_fields(parts: Any, correct: Any) -> list[str]:
    fields = [field.name for field in dataclasses.fields(correct)]
    nested = [name for name in fields if dataclasses.is_dataclass(getattr(correct, name))]
    changed = [name for name in fields if name not in nested and getattr(parts, name) != getattr(correct, name)]
    for name in nested:
        changed += changed_fields(getattr(parts, name), getattr(correct, name))
    return changed


def test_planted_bugs_of_one_part_can_be_combined() -> None:
    log = BUGS.parts(("ack-before-fsync", "no-truncate-on-conflict")).replicated_log
    correct = CoreParts().replicated_log
    assert log._flush is not correct._flush
    assert log._truncate is not correct._truncate
    assert log._committed_index is correct._committed_index


@pytest.mark.parametrize("options", [{"election": "zab"}, {"replication": "pull"}])
def test_a_single_node_with_options_that_need_others_is_refused(options: dict[str, str]) -> None:
    core: Any = ConsistentCore()
    with pytest.raises(UsageError, match="A single node elects itself"):
        core.node(None, ("athens",), options, frozenset())


def test_every_message_survives_the_wire() -> None:
    decoder = msgspec.msgpack.Decoder(Any)
    union: Any = RAFT_MESSAGES[0]
    for message in RAFT_MESSAGES[1:]:
        union = union | message
    typed = msgspec.msgpack.Decoder(union)
    samples = [
        ClientRequest(1, 2, CompareAndSet("k", None, [1, "x"])),
        ClientRequest(1, 3, SetValue("k", {"a": 1})),
        ReplicationRequest("athens", 3, 17, 99, 4, 2, 4, [LogEntry(5, 3, DATA, b"\x00\xff", 7)]),
    ]
    for sample in samples:
        data = msgspec.msgpack.encode(sample)
        assert typed.decode(data) == sample
        assert decoder.decode(data)["type"] == sample.__struct_config__.tag


def test_message_tags_are_distinct() -> None:
    tags = [message.__struct_config__.tag for message in RAFT_MESSAGES]
    assert len(set(tags)) == len(tags)


def test_a_session_runs_a_request_once_and_then_repeats_the_answer() -> None:
    sessions: ClientSessions[str] = ClientSessions()
    sessions.register(7)
    assert sessions.execute(7, 1, lambda: "first") == ("first", True)
    assert sessions.execute(7, 1, lambda: "second") == ("first", False)


def test_sessions_keep_the_last_five_answers_and_refuse_what_was_discarded() -> None:
    sessions: ClientSessions[int] = ClientSessions()
    sessions.register(7)
    for number in range(1, 7):
        sessions.execute(7, number, lambda number=number: number)
    with pytest.raises(RequestDiscarded):
        sessions.execute(7, 1, lambda: 0)
    assert sessions.execute(7, 2, lambda: 0) == (2, False)
    session = sessions.session(7)
    assert session is not None and len(session.responses) == 5


def test_clients_do_not_share_answers_and_strangers_get_none() -> None:
    sessions: ClientSessions[str] = ClientSessions()
    sessions.register(7)
    sessions.register(8)
    sessions.execute(7, 1, lambda: "seven")
    assert sessions.execute(8, 1, lambda: "eight") == ("eight", True)
    with pytest.raises(UnknownSession):
        sessions.execute(9, 1, lambda: "nine")


def applied(index: int, generation: int, checksum: int = 1, client: int = 0, number: int = 0) -> EntryApplied:
    return EntryApplied(index, generation, checksum, client, number, client > 0)


BREACHES: list[tuple[str, list[tuple[str, Any]]]] = [
    ("LDR-I1", [("athens", BecameLeader(1, 0, 0)), ("cyrene", BecameLeader(1, 0, 0))]),
    ("LDR-I2", [("athens", VoteCounted("delphi", 2)), ("cyrene", VoteCounted("delphi", 2))]),
    ("LDR-I2", [("delphi", CandidateSeen("athens", 2)), ("cyrene", VoteCounted("athens", 2))]),
    ("LDR-I3", [("athens", HighWaterMarkAdvanced(1, 5, 1, True)), ("cyrene", BecameLeader(2, 4, 1))]),
    ("LDR-I3", [("cyrene", BecameLeader(2, 4, 1)), ("athens", HighWaterMarkAdvanced(1, 5, 1, True))]),
    ("LDR-I3", [("athens", HighWaterMarkAdvanced(2, 5, 2, True)), ("cyrene", BecameLeader(3, 9, 1))]),
    ("GEN-I1", [("athens", GenerationAdopted(3)), ("athens", GenerationAdopted(2))]),
    ("GEN-I1", [("athens", BecameLeader(3, 0, 0)), ("athens", NodeStarted(2, 0))]),
    ("GEN-I2", [("athens", applied(1, 2)), ("athens", applied(2, 1))]),
    ("LOG-I1", [("athens", applied(1, 1, 5)), ("cyrene", applied(1, 1, 6))]),
    ("LOG-I1", [("athens", applied(1, 1)), ("athens", applied(2, 2)), ("cyrene", applied(2, 2))]),
    ("LOG-I2", [("athens", applied(1, 1)), ("cyrene", applied(1, 2))]),
    ("LOG-R14", [("athens", HighWaterMarkAdvanced(2, 5, 1, True))]),
    ("HWM-I1", [("athens", HighWaterMarkAdvanced(1, 5, 1, False)), ("athens", HighWaterMarkAdvanced(1, 4, 1, False))]),
    ("HWM-I5", [("athens", EntriesTruncated(4, 6, 4))]),
    ("IDR-I1", [("athens", applied(1, 1, 1, 7, 1)), ("athens", applied(2, 1, 1, 7, 1))]),
    ("LDR-I5", [("athens", AnsweredWithoutLeading(4))]),
    ("HB-I3", [("athens", LeaderSuspected(249_999, 250_000))]),
    ("GEN-I3", [("athens", OldGenerationFollowed(2, 3))]),
    ("GEN-I4", [("athens", GenerationAdopted(2)), ("athens", applied(1, 3))]),
    (
        "GEN-I5",
        [("athens", BecameLeader(3, 0, 0)), ("cyrene", BecameLeader(4, 0, 0)), ("athens", BecameLeader(3, 1, 3))],
    ),
    ("IDR-R5", [("athens", DuplicateAnswered(7, 1, 5)), ("cyrene", DuplicateAnswered(7, 1, 6))]),
    ("IDR-I2", [("athens", applied(1, 1, 1, 7, 0)), ("athens", applied(2, 1, 1, 7, 0))]),
    ("IDR-I3", [("athens", SessionsSeen(32, 2, 5, 1, 5)), ("cyrene", SessionsSeen(32, 2, 6, 1, 5))]),
    ("IDR-I4", [("athens", SessionsSeen(32, 2, 5, 6, 5))]),
    ("IDR-R14", [("athens", applied(1, 1, 1, 7, 1)), ("athens", SessionsEnded(2, (7,), 100))]),
    ("IDR-R16", [("athens", SessionsEnded(2, (7,), 1)), ("athens", applied(3, 1, 1, 7, 1))]),
    ("RP-I1", [("athens", PipelineDeepened("cyrene", 6, 5))]),
    ("RB-I3", [("athens", BatchAppended(3, 101, 100))]),
    ("RB-I3", [("athens", BatchAppended(0, 0, 100))]),
    ("LOG-I7", [("athens", HighWaterMarkAdvanced(2, 1, 2, True)), ("cyrene", LeaseReadServed(1))]),
]


def breached(events: list[tuple[str, Any]]) -> set[str]:
    found: list[Breach] = []
    for invariant in raft_invariants():
        for time_us, (node, event) in enumerate(events):
            if isinstance(event, invariant.events):
                invariant.observe(time_us, node, event, found.append)
    return {breach.invariant for breach in found}


@pytest.mark.parametrize(("invariant", "events"), BREACHES)
def test_each_invariant_reports_its_breach(invariant: str, events: list[tuple[str, Any]]) -> None:
    assert invariant in breached(events)


@pytest.mark.rows("IDR-R14")
@pytest.mark.parametrize(("idle_ms", "is_told"), [(70, True), (75, False), (150, False)])
def test_a_session_may_end_early_by_as_much_as_faults_let_the_leaders_clock_run_fast(
    idle_ms: int, is_told: bool
) -> None:
    found: list[Breach] = []
    invariant = LiveSessionsStay()
    invariant.observe(1_000_000, "athens", applied(1, 1, 1, 7, 1), found.append)
    invariant.observe(1_000_000 + 1_000 * idle_ms, "athens", SessionsEnded(2, (7,), 150_000), found.append)
    assert [breach.invariant for breach in found] == (["IDR-R14"] if is_told else [])


def test_every_invariant_has_a_breach_above() -> None:
    # Those of the replicated log and of storage have files of their own.
    elsewhere = {invariant.id for invariant in (*REPLICATED_LOG_INVARIANTS, *STORAGE_INVARIANTS)}
    assert {invariant.id for invariant in raft_invariants()} - elsewhere == {name for name, _ in BREACHES}


@pytest.mark.parametrize(
    "events",
    [
        pytest.param([("athens", BecameLeader(1, 0, 0)), ("athens", BecameLeader(2, 0, 0))], id="two generations"),
        pytest.param([("athens", VoteCounted("delphi", 2)), ("athens", VoteCounted("delphi", 2))], id="repeated vote"),
        pytest.param([("athens", GenerationAdopted(3)), ("athens", NodeStarted(2, 0))], id="adopted but not durable"),
        pytest.param(
            [
                ("athens", HighWaterMarkAdvanced(1, 5, 1, False)),
                ("athens", NodeStarted(1, 5)),
                ("athens", HighWaterMarkAdvanced(1, 2, 1, False)),
            ],
            id="mark learned again",
        ),
        pytest.param([("athens", HighWaterMarkAdvanced(2, 5, 1, False))], id="follower's mark at an old entry"),
        pytest.param(
            [
                (node, event)
                for node in ("athens", "cyrene")
                for event in (HighWaterMarkAdvanced(1, 1, 1, False), applied(1, 1, 1, 7, 1))
            ],
            id="both apply it",
        ),
        pytest.param([("athens", EntriesTruncated(5, 6, 4))], id="cut above the mark"),
        pytest.param([("athens", SessionsSeen(32, 2, 5, 9, None))], id="a policy without a bound"),
        pytest.param(
            [
                ("athens", HighWaterMarkAdvanced(1, 1, 1, False)),
                ("athens", applied(1, 1, 1, 7, 1)),
                ("athens", SessionsEnded(2, (7,), 1)),
            ],
            id="idle long enough",
        ),
        pytest.param(
            [
                ("athens", SessionsEnded(2, (7,), 1)),
                ("cyrene", HighWaterMarkAdvanced(1, 1, 1, False)),
                ("cyrene", applied(1, 1, 1, 7, 1)),
            ],
            id="a slower server",
        ),
        pytest.param(
            [("athens", HighWaterMarkAdvanced(1, 5, 1, True)), ("cyrene", BecameLeader(2, 5, 1))], id="complete leader"
        ),
        pytest.param([("athens", PipelineDeepened("cyrene", 5, 5))], id="as many in flight as allowed"),
        pytest.param([("athens", BatchAppended(3, 100, 100))], id="a batch that fits exactly"),
    ],
)
def test_what_is_allowed_is_not_reported(events: list[tuple[str, Any]]) -> None:
    assert breached(events) == set()
