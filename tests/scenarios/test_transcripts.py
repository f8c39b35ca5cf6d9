"""Every transcript gives the output it says; `pytest tests/scenarios --rewrite-transcripts` writes down what it gives.

A rewritten transcript is read like any other change before it is committed: the difference is what the change does.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from faultline.harness.invariant import Breach
from faultline.story.log_player import LogPlayer
from faultline.testing.transcripts import (
    CommandError,
    Step,
    Transcript,
    TranscriptError,
    check_transcript,
    parse_transcript,
    read_transcript,
)

FOLDER = Path(__file__).parent / "transcripts"
TRANSCRIPTS = [read_transcript(path) for path in sorted(FOLDER.glob("*.txt"))]
NOWHERE = Path("story.txt")


@pytest.mark.parametrize(
    "transcript",
    [
        pytest.param(transcript, id=transcript.path.stem, marks=pytest.mark.rows(*transcript.rows))
        for transcript in TRANSCRIPTS
    ],
)
def test_a_transcript_gives_the_output_it_says(transcript: Transcript, request: pytest.FixtureRequest) -> None:
    script = LogPlayer()
    check_transcript(transcript.path, script.execute, rewrite=request.config.getoption("--rewrite-transcripts"))
    script.finish()


@pytest.mark.parametrize("transcript", TRANSCRIPTS, ids=[transcript.path.stem for transcript in TRANSCRIPTS])
def test_a_transcript_names_its_rows_and_tells_what_it_is_about(transcript: Transcript) -> None:
    assert transcript.rows
    first = transcript.parts[0]
    assert isinstance(first, str) and len(first.splitlines()) > 1
    assert all(step.separated for step in transcript.steps)


def played(text: str) -> list[Step]:
    return parse_transcript(NOWHERE, text).run(LogPlayer().execute).steps


def test_a_transcript_that_expects_something_else_is_seen_to_differ() -> None:
    text = "cluster 3\nelect athens\n----\nbyzantium leads generation 1\n"
    assert played(text)[0].output == ("athens leads generation 1",)


def test_playing_a_transcript_keeps_comments_and_commands_and_adds_the_output() -> None:
    text = "# rows: LOG-S3\n# A story.\n\ncluster 3\n\n# Then.\n\nelect athens\n"
    transcript = parse_transcript(NOWHERE, text)
    assert transcript.rows == ("LOG-S3",)
    first, then = "cluster 3\n----\nok", "elect athens\n----\nathens leads generation 1"
    expected = f"# rows: LOG-S3\n# A story.\n\n{first}\n\n# Then.\n\n{then}\n"
    assert transcript.run(LogPlayer().execute).text() == expected
    assert parse_transcript(NOWHERE, expected).text() == expected


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("delvier", r"no command 'delvier'. Did you mean deliver\?"),
        ("elect paris", "no node 'paris'; there are athens, byzantium, cyrene"),
        ("deliver athens->cyrene votes", "'votes' is neither a link"),
        ("pass 3 hours", "write `pass DURATION`"),
        ("pass 3h", "no duration; write 200ms"),
        ("show everything", r"write `show log\|state"),
        ("step athens->cyrene", "no such message is on its way"),
        ("release x", "nothing is held back as 'x'"),
        ("replicate byzantium->athens after=3", "is not INDEX/GENERATION"),
    ],
)
def test_a_command_that_cannot_be_carried_out_says_why_and_where(line: str, says: str) -> None:
    with pytest.raises(TranscriptError, match=says) as raised:
        played(f"cluster 3\n{line}\n")
    assert str(raised.value).startswith(f"story.txt:2: `{line}`: ")


def test_a_transcript_without_a_cluster_says_how_to_begin() -> None:
    with pytest.raises(CommandError, match="the first command is `cluster 3`"):
        LogPlayer().execute("heal")


def test_a_broken_invariant_that_the_story_does_not_show_is_an_error() -> None:
    script = LogPlayer()
    script.execute("cluster 3")
    script.cluster.breaches.append(Breach(invariant="LOG-I2", sentence="They differ.", time_us=0, node="athens"))
    with pytest.raises(CommandError, match="LOG-I2 broken; `show breaches` tells how"):
        script.finish()
    assert script.execute("show breaches") == ["LOG-I2: They differ."]
    script.finish()


def test_a_comment_among_commands_is_refused() -> None:
    with pytest.raises(TranscriptError, match="story.txt:2: a comment stands in a paragraph of its own"):
        parse_transcript(NOWHERE, "cluster 3\n# and then\nelect athens\n")


def test_every_command_is_explained_beside_the_rules_of_tests() -> None:
    readme = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    usages = LogPlayer.usages()
    assert [verb for verb in usages if f"| `{usages[verb]}` |" not in readme.replace("\\|", "|")] == []
