"""The telling of a scene: its commands are carried out, and each paragraph is compared with what it says.

A reader may change one thing – plant a bug, leave a paragraph out, put other commands in its place – and the telling
shows which paragraphs no longer hold. Nothing is judged beside the output and the invariants of the system: a paragraph
holds when its commands give exactly the lines it says and no invariant is broken by then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from faultline.harness.errors import UsageError
from faultline.harness.system import PlantedBug
from faultline.registry import load_system
from faultline.story.clock_player import ClockPlayer
from faultline.story.data_player import DataPlayer
from faultline.story.file_player import FilePlayer
from faultline.story.gossip_player import GossipPlayer
from faultline.story.in_processes import Processes
from faultline.story.location_files import LocationFiles
from faultline.story.log_player import DEFAULT_SYSTEM, LogPlayer
from faultline.story.member_player import MemberPlayer
from faultline.story.partition_player import PartitionPlayer
from faultline.story.range_player import RangePlayer
from faultline.story.read_player import ReadPlayer
from faultline.story.scenes import Paragraph, Scene
from faultline.story.service_player import ServicePlayer
from faultline.story.transaction_player import TransactionPlayer
from faultline.systems_under_test.reference.coordinated_kv.system import CoordinatedKv
from faultline.systems_under_test.reference.coordination_service.system import CoordinationService
from faultline.systems_under_test.reference.emergent.system import EmergentLeader
from faultline.systems_under_test.reference.follower_reads.system import FollowerReadStore
from faultline.systems_under_test.reference.gossip.system import Gossip
from faultline.systems_under_test.reference.partitioned_kv.system import PartitionedKv
from faultline.systems_under_test.reference.range_kv.system import RangeKv
from faultline.systems_under_test.reference.timestamped_kv.system import TimestampedKv
from faultline.systems_under_test.reference.transactional_kv.system import TransactionalKv
from faultline.testing.transcript_player import BarePlayer
from faultline.testing.transcripts import CommandError

__all__ = ["AS_WRITTEN", "Change", "Told", "planted_bugs_of", "player_of", "system_of", "tell"]


_PLAYERS: dict[str, type[BarePlayer]] = {
    LocationFiles.name: FilePlayer,
    FollowerReadStore.name: ReadPlayer,
    TimestampedKv.name: ClockPlayer,
    PartitionedKv.name: PartitionPlayer,
    RangeKv.name: RangePlayer,
    TransactionalKv.name: TransactionPlayer,
    CoordinatedKv.name: DataPlayer,
    EmergentLeader.name: MemberPlayer,
    CoordinationService.name: ServicePlayer,
    Gossip.name: GossipPlayer,
}


@dataclass(frozen=True)
class Change:
    """A change of a scene: the bug that is planted, and the paragraph that gets other `commands` (none: left out)."""

    planted_bug: str = ""
    paragraph: int = 0
    commands: tuple[str, ...] = ()

    def words(self) -> str:
        """Return the change as a phrase; empty when there is none."""
        if self.planted_bug:
            return f"with the bug {self.planted_bug}"
        if self.paragraph:
            instead = "; ".join(self.commands)
            return (
                f"with `{instead}` as paragraph {self.paragraph}" if instead else f"without paragraph {self.paragraph}"
            )
        return ""


SHOWN = "show breaches"
"""The command by which a paragraph says that an invariant is broken."""

AS_WRITTEN = Change()
"""No change."""


@dataclass(frozen=True)
class Told:
    """A paragraph as it went: the lines of its commands, and the reason why the scene had to stop, if it did.

    `broken` names the invariants that this paragraph broke, each with its sentence; `changed` says that the reader
    replaced its commands, so that there is nothing to compare.
    """

    paragraph: Paragraph
    lines: tuple[str, ...]
    broken: tuple[str, ...] = ()
    stopped: str = ""
    changed: bool = False

    @property
    def holds(self) -> bool:
        """True when it went as the paragraph says."""
        as_said = self.changed or self.lines == self.paragraph.output
        return as_said and not self.broken and not self.stopped


def system_of(scene: Scene) -> str:
    """Return the name of the system whose nodes play the scene."""
    words = next(command for command in scene.paragraphs[0].commands if command.startswith("cluster ")).split()
    return next((word.removeprefix("system=") for word in words if word.startswith("system=")), DEFAULT_SYSTEM)


def player_of(scene: Scene) -> BarePlayer:
    """Return a new player of the scene."""
    return _PLAYERS.get(system_of(scene), LogPlayer)()


def planted_bugs_of(scene: Scene) -> Mapping[str, PlantedBug]:
    """Return the planted bugs of the system that plays the scene."""
    name = system_of(scene)
    return LocationFiles.planted_bugs if name == LocationFiles.name else load_system(name).planted_bugs


def tell(scene: Scene, change: Change = AS_WRITTEN, processes: Processes | None = None) -> Iterator[Told]:
    """Carry the scene out and yield each paragraph as it went; end early where it cannot go on.

    With `processes` each node is one of them, and all have ended when the telling has. Raise UsageError for a change
    that the scene does not allow.
    """
    _refuse_unknown_bug(scene, change)
    if change.paragraph:
        scene.paragraph(change.paragraph)
    player = player_of(scene)
    if processes is not None:
        player.placed = processes.placed
    try:
        yield from _told(scene, change, player)
    finally:
        player.close()


def _told(scene: Scene, change: Change, player: BarePlayer) -> Iterator[Told]:
    known: set[str] = set()
    for paragraph in scene.paragraphs:
        changed = paragraph.number == change.paragraph
        commands = change.commands if changed else paragraph.commands
        lines, stopped = _carried_out(player, paragraph, commands, change.planted_bug)
        # A breach that the paragraph shows is part of what it says, and is compared with it.
        known |= {breach.invariant for breach in player.breaches() if SHOWN in paragraph.commands}
        broken = {breach.invariant: breach.sentence for breach in player.breaches() if breach.invariant not in known}
        known = {breach.invariant for breach in player.breaches()}
        sentences = tuple(f"{invariant}: {sentence}" for invariant, sentence in broken.items())
        yield Told(paragraph, lines, sentences, stopped, changed)
        if stopped:
            return


def _carried_out(
    player: BarePlayer, paragraph: Paragraph, commands: tuple[str, ...], planted_bug: str
) -> tuple[tuple[str, ...], str]:
    """Return the lines of the commands, and the reason why one could not be carried out; a silent step says `ok`."""
    by_step = [len(step.commands) for step in paragraph.steps]
    # Other commands than the paragraph's own are one step, however many they are.
    if len(commands) != sum(by_step):
        by_step = [len(commands)] if commands else []
    lines: list[str] = []
    rest = iter(commands)
    for count in by_step:
        given: list[str] = []
        for _ in range(count):
            command = _with_bug(next(rest), planted_bug)
            try:
                given += player.execute(command)
            except (CommandError, AssertionError) as error:
                return (*lines, *given), f"`{command}`: {error}"
            except Exception as error:
                # A node with a planted bug may fail in any way; without one it is an error of ours.
                if not planted_bug:
                    raise
                return (*lines, *given), f"`{command}`: a node failed: {error!r}"
        lines += given or ["ok"]
    return tuple(lines), ""


def _with_bug(command: str, planted_bug: str) -> str:
    return f"{command} bug={planted_bug}" if planted_bug and command.startswith("cluster ") else command


def _refuse_unknown_bug(scene: Scene, change: Change) -> None:
    if not change.planted_bug:
        return
    name = system_of(scene)
    if change.planted_bug not in planted_bugs_of(scene):
        prevented = sorted({bug for paragraph in scene.paragraphs for bug in paragraph.prevents})
        raise UsageError(
            f"{name}, which plays the scene {scene.name}, has no planted bug {change.planted_bug!r}.",
            f"The scene names {', '.join(prevented) or 'none'}; `faultline list planted-bugs` lists all.",
        )
