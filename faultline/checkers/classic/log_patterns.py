"""Panics and fatal errors in the logs of the nodes (Jepsen's `log-file-pattern`).

Shape: any history; the checker reads files. Those are `files` below `folder`, when it is given, else the node logs that
the run names (`run.detail["node_logs"]`). A line that matches one of `patterns` and none of `ignore` is a finding.

A run without logs is *unknown* rather than a pass, and so is one that names a log that is missing: no pattern was found
in the others, but the node without a log may have said anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from faultline.checkers.common.conclusion import EXAMPLES_MAX
from faultline.checkers.common.words import counted
from faultline.harness.errors import UsageError
from faultline.harness.history import History
from faultline.harness.run_record import RunRecord
from faultline.harness.verdict import Cause, CheckResult, Finding, Reason, Verdict

__all__ = ["LOG_PATTERN", "PATTERNS", "LogPatternChecker"]

LOG_PATTERN = "log-pattern"

PATTERNS = (
    r"\bpanic\b",
    r"\bfatal\b",
    r"(?i:\bassert(ion)?\b.*\bfail(ed|ure)\b)",
    r"\bsegmentation fault\b|\bSIGSEGV\b",
    r"^Traceback \(most recent call last\)",
    r"(?i:checksum mismatch|data corruption)",
)
"""The patterns of a crash or of damage in the logs of most systems."""

_LINE_LENGTH_MAX = 240


class LogPatternChecker:
    """A checker with a violation for each pattern that some line of a node's log matches."""

    name = "log-patterns"

    def __init__(
        self,
        *,
        patterns: Sequence[str] = PATTERNS,
        ignore: Sequence[str] = (),
        folder: Path | str | None = None,
        files: str = "**/*.log",
    ) -> None:
        self.patterns = [_compiled(pattern) for pattern in patterns]
        self.ignore = [_compiled(pattern) for pattern in ignore]
        self.folder = None if folder is None else Path(folder)
        self.files = files

    def check(self, history: History, run: RunRecord | None = None) -> CheckResult:
        """Return the verdict on the logs of `run`; of `history` nothing is needed."""
        named = self._logs(run)
        logs = [log for log in named if log.is_file()]
        found: dict[str, list[tuple[Path, int, str]]] = {}
        for log in logs:
            for pattern, number, line in self._matches(log):
                found.setdefault(pattern, []).append((log, number, line))
        findings = tuple(_finding(pattern, lines) for pattern, lines in found.items())
        is_whole = bool(logs) and len(logs) == len(named)
        verdict = Verdict.VIOLATION if findings else Verdict.PASS if is_whole else Verdict.UNKNOWN
        return CheckResult(
            checker=self.name,
            verdict=verdict,
            sentence=_sentence(findings, len(logs), len(named), len(self.patterns)),
            findings=findings,
            reason=Reason(cause=Cause.NO_LOGS) if verdict is Verdict.UNKNOWN else None,
            detail={"logs": [str(log) for log in logs], "counts": {name: len(lines) for name, lines in found.items()}},
        )

    def _logs(self, run: RunRecord | None) -> list[Path]:
        if self.folder is not None:
            return sorted(log for log in self.folder.glob(self.files) if log.is_file())
        return [Path(log) for log in run.detail.get("node_logs", ())] if run is not None else []

    def _matches(self, log: Path) -> Iterator[tuple[str, int, str]]:
        with log.open(encoding="utf-8", errors="replace") as lines:
            for number, line in enumerate(lines, start=1):
                matching = next((pattern for pattern in self.patterns if pattern.search(line)), None)
                if matching is not None and not any(pattern.search(line) for pattern in self.ignore):
                    yield matching.pattern, number, line.strip()[:_LINE_LENGTH_MAX]


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise UsageError(
            f"`{pattern}` is not a regular expression: {error}.", "Escape characters that are meant literally."
        ) from error


def _finding(pattern: str, lines: Sequence[tuple[Path, int, str]]) -> Finding:
    log, number, line = lines[0]
    more = f" and {counted(len(lines) - 1, 'more line')}" if len(lines) > 1 else ""
    return Finding(
        checker=LogPatternChecker.name,
        anomaly=LOG_PATTERN,
        sentence=f"The log of {log.parent.name} says, in line {number} of {log.name}: {line}{more}",
        node=log.parent.name,
        detail={
            "pattern": pattern,
            "lines": [{"file": str(log), "line": number, "text": text} for log, number, text in lines[:EXAMPLES_MAX]],
        },
    )


def _sentence(findings: Sequence[Finding], logs: int, named: int, patterns: int) -> str:
    if findings:
        return findings[0].sentence
    if not logs:
        return "The run has no logs of nodes."
    missing = f"; of {counted(named, 'log')} {named - logs} cannot be found" if named > logs else ""
    return f"{counted(logs, 'log')} of nodes match none of {counted(patterns, 'pattern')}{missing}."
