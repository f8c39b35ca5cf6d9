"""The commands of transcripts, over the hand-cranked cluster; tests/README.md explains them."""

from __future__ import annotations

from cluster_driver import Cluster
from transcript_format import CommandError
from transcript_script import HELP, LINK, Script, command, duration_us, exactly, matcher, options_in
from transcript_words import entry_words, message_words

from faultline.harness.world.ports import NodeId
from faultline.registry import load_system
from faultline.systems_under_test.patterns.data_replication.replicated_log import ReplicationRequest
from faultline.systems_under_test.patterns.data_replication.write_ahead_log import NO_OP, LogEntry
from faultline.systems_under_test.reference.shared.client_messages import CompareAndSet, GetValue, SetValue

# -- the cluster and its faults ---------------------------------------------------------------------------------------


@command("cluster SIZE [OPTION=VALUE …] [bug=NAME] [system=NAME]")
def begin_cluster(script: Script, words: list[str]) -> None:
    size = words[0] if words else ""
    if not size.isdigit():
        raise CommandError(f"write `{HELP['cluster']}`")
    options = options_in(words[1:])
    bugs = tuple(filter(None, options.pop("bug", "").split(",")))
    system = type(load_system(options.pop("system", "consistent-core")))
    script.begin(type("ScriptedCluster", (Cluster,), {"system_type": system})(int(size), bugs, **options))


@command("cut NODE [FROM …]")
def cut(script: Script, words: list[str]) -> None:
    script.cluster.cut(*map(script.node, words))


@command("split NODE …")
def split(script: Script, words: list[str]) -> None:
    script.cluster.split(*map(script.node, words))


@command("heal")
def heal(script: Script, words: list[str]) -> None:
    script.cluster.heal()


@command("crash NODE …")
def crash(script: Script, words: list[str]) -> None:
    for name in words:
        script.cluster.kill(script.running(name))


@command("restart NODE …")
def restart(script: Script, words: list[str]) -> None:
    for name in words:
        script.cluster.restart(script.node(name))


# -- messages ---------------------------------------------------------------------------------------------------------


@command("deliver [LINK] [KIND …] [except KIND …]")
def deliver(script: Script, words: list[str]) -> None:
    script.deliver(matcher(script, words))


@command("settle [LINK] [KIND …] [except KIND …]")
def settle(script: Script, words: list[str]) -> None:
    script.deliver(matcher(script, words))


@command("step [LINK] [KIND …] [except KIND …]")
def step(script: Script, words: list[str]) -> None:
    script.in_brief = False
    match = matcher(script, words)
    if not any(match(*item) for item in script.cluster.queue):
        raise CommandError("no such message is on its way; `show messages` lists them")
    script.deliver(match, once=True)


@command("drop [LINK] [KIND …] [except KIND …]")
def drop(script: Script, words: list[str]) -> None:
    lost = script.cluster.take(matcher(script, words))
    script.lines += [f"lost: {message_words(*item)}" for item in lost]


@command("repeat [LINK] [KIND …] [except KIND …]")
def repeat(script: Script, words: list[str]) -> None:
    match = matcher(script, words)
    script.cluster.queue += [item for item in script.cluster.queue if match(*item)]


@command("hold NAME [LINK] [KIND …] [except KIND …]")
def hold(script: Script, words: list[str]) -> None:
    if not words:
        raise CommandError(f"write `{HELP['hold']}`")
    held = script.cluster.take(matcher(script, words[1:]))
    script.held[words[0]] = held
    script.lines += [f"held back: {message_words(*item)}" for item in held]


@command("release NAME")
def release(script: Script, words: list[str]) -> None:
    (name,) = exactly(1, words, "release")
    if name not in script.held:
        raise CommandError(f"nothing is held back as {name!r}")
    for item in script.held.pop(name):
        script.hand(item)


@command("replicate LEADER->FOLLOWER generation=G after=INDEX/GENERATION [mark=M] [INDEX/GENERATION …]")
def replicate(script: Script, words: list[str]) -> None:
    """Play a leader: hand the follower a request and print its answer."""
    link = LINK.match(words[0]) if words else None
    if link is None:
        raise CommandError(f"write `{HELP['replicate']}`")
    options = options_in([word for word in words[1:] if "=" in word])
    entries = [LogEntry(*_position(word), NO_OP, b"") for word in words[1:] if "=" not in word]
    leader, follower = script.node(link["source"]), script.running(link["target"])
    prev_index, prev_generation = _position(options.get("after", "0/0"))
    generation, mark = int(options.get("generation", "1")), int(options.get("mark", "0"))
    request = ReplicationRequest(leader, generation, 1, 0, prev_index, prev_generation, mark, entries)
    script.in_brief = False
    script.hand((leader, follower, request))
    answers = script.cluster.take(lambda source, target, _: (source, target) == (follower, leader))
    script.lines += [message_words(*item) for item in answers]


def _position(text: str) -> tuple[int, int]:
    index, slash, generation = text.partition("/")
    if not (slash and index.isdigit() and generation.isdigit()):
        raise CommandError(f"{text!r} is not INDEX/GENERATION, like 3/1")
    return int(index), int(generation)


# -- time and elections -----------------------------------------------------------------------------------------------


@command("silence [NODE …]")
def silence(script: Script, words: list[str]) -> None:
    script.cluster.go_silent(*map(script.node, words))


@command("time-out NODE")
def time_out(script: Script, words: list[str]) -> None:
    (name,) = exactly(1, words, "time-out")
    script.cluster.time_out(script.running(name))


@command("elect NODE [LINK] [KIND …] [except KIND …]")
def elect(script: Script, words: list[str]) -> None:
    name = script.running(exactly(1, words[:1], "elect")[0])
    match = matcher(script, words[1:])
    script.quietly(lambda: script.cluster.elect(name, match))


@command("heartbeat NODE")
def heartbeat(script: Script, words: list[str]) -> None:
    (name,) = exactly(1, words, "heartbeat")
    script.cluster.heartbeat(script.running(name))


@command("pass DURATION")
def pass_time(script: Script, words: list[str]) -> None:
    (text,) = exactly(1, words, "pass")
    script.quietly(lambda: script.cluster.pass_time(duration_us(text)))


@command("clock NODE DURATION")
def clock(script: Script, words: list[str]) -> None:
    name, text = exactly(2, words, "clock")
    script.cluster.ports[script.node(name)].now_us += duration_us(text)


@command("wall-clock NODE DURATION")
def wall_clock(script: Script, words: list[str]) -> None:
    name, text = exactly(2, words, "wall-clock")
    script.cluster.ports[script.node(name)].wall_offset_us += duration_us(text)


# -- clients ----------------------------------------------------------------------------------------------------------


@command("register CLIENT NODE")
def register(script: Script, words: list[str]) -> None:
    name, node = exactly(2, words, "register")
    client = script.client(name).register(script.running(node))
    script.lines.append(f"{name} is client {client.client_id}")


@command("set CLIENT NODE KEY VALUE")
def set_value(script: Script, words: list[str]) -> None:
    name, node, key, value = exactly(4, words, "set")
    script.client(name).ask(script.running(node), SetValue(key, value))
    _told(script, name)


@command("get CLIENT NODE KEY")
def get_value(script: Script, words: list[str]) -> None:
    name, node, key = exactly(3, words, "get")
    script.client(name).ask(script.running(node), GetValue(key))
    _told(script, name)


@command("cas CLIENT NODE KEY EXPECTED VALUE")
def compare_and_set(script: Script, words: list[str]) -> None:
    name, node, key, expected, value = exactly(5, words, "cas")
    script.client(name).ask(script.running(node), CompareAndSet(key, expected, value))
    _told(script, name)


@command("ask-again CLIENT NODE NUMBER set KEY VALUE")
def ask_again(script: Script, words: list[str]) -> None:
    name, node, number, _, key, value = exactly(6, words, "ask-again")
    script.client(name).ask_again(script.running(node), int(number), SetValue(key, value))
    _told(script, name)


def _told(script: Script, client: str) -> None:
    """What the node said at once, if anything: answers wait in the queue like all messages, and are taken from it."""
    script.tell_events()
    script.deliver(lambda _, target, __: target == client)


# -- what can be seen -------------------------------------------------------------------------------------------------


@command("show log|state|values|messages|marks|breaches [NODE …]")
def show(script: Script, words: list[str]) -> None:
    views = {"log": _log, "state": _state, "values": _values}
    what, *names = words or [""]
    if what in views:
        script.lines += [views[what](script, script.node(name)) for name in names or script.cluster.members]
    elif what == "messages":
        script.lines += [message_words(*item) for item in script.cluster.queue] or ["none"]
    elif what == "marks":
        script.lines.append(", ".join(dict.fromkeys(script.cluster.marks)) or "none")
    elif what == "breaches":
        script.breaches_shown = True
        script.lines += [f"{breach.invariant}: {breach.sentence}" for breach in script.cluster.breaches] or ["none"]
    else:
        raise CommandError(f"write `{HELP['show']}`")


def _log(script: Script, name: str) -> str:
    if name not in script.cluster.nodes:
        return f"{name}: down"
    wal = script.cluster.nodes[name].wal
    entries = wal.entries(wal.compacted_index + 1, wal.last_index)
    discarded = [f"… {wal.compacted_index}"] if wal.compacted_index else []
    return f"{name}: {', '.join([*discarded, *map(entry_words, entries)]) or 'empty'}"


def _state(script: Script, name: str) -> str:
    if name not in script.cluster.nodes:
        return f"{name}: down"
    status = script.cluster.nodes[NodeId(name)].status()
    known = {None: "", NodeId(name): ""}.get(status.leader, f" of {status.leader}")
    detail = status.detail
    return (
        f"{name}: {status.role}{known} in generation {status.generation}, log ends at {detail['last_index']},"
        f" mark {detail['high_water_mark']}, applied {detail['applied']}"
    )


def _values(script: Script, name: str) -> str:
    if name not in script.cluster.nodes:
        return f"{name}: down"
    values = script.cluster.values(name)
    return f"{name}: {', '.join(f'{key}={value}' for key, value in sorted(values.items())) or 'nothing'}"
