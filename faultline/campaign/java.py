"""The search for a Java runtime that Spark 4 can use: 17 or newer, from JAVA_HOME or from `java` on the PATH."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import msgspec

from faultline.harness.errors import HarnessError

__all__ = ["MINIMUM_VERSION", "JavaRuntime", "find_java"]

MINIMUM_VERSION = 17
_PACKAGE = "openjdk-17-jre-headless"
_NEXT_STEP = f"Install one, on Debian with `apt-get install {_PACKAGE}`, or set JAVA_HOME to one."
_PROBE_DEADLINE_S = 30
_VERSION = re.compile(r'version "(\d+)(?:\.(\d+))?')


class JavaRuntime(msgspec.Struct, frozen=True):
    """A usable Java: its home folder and its major version."""

    home: Path
    version: int

    def __str__(self) -> str:
        return f"Java {self.version} in {self.home}"


def find_java(environment: Mapping[str, str] = os.environ) -> JavaRuntime:
    """Return the Java runtime that Spark will use. Raise HarnessError, with the package to install, when there is
    none."""
    command = _command(environment)
    version = _version_of(command)
    if version < MINIMUM_VERSION:
        raise HarnessError(f"Spark needs Java {MINIMUM_VERSION} or newer, but {command} is Java {version}.", _NEXT_STEP)
    return JavaRuntime(command.resolve().parent.parent, version)


def _command(environment: Mapping[str, str]) -> Path:
    home = environment.get("JAVA_HOME")
    if home:
        return Path(home) / "bin" / "java"
    found = shutil.which("java", path=environment.get("PATH", ""))
    if found is None:
        raise HarnessError("There is no Java runtime on this machine, and Spark needs one.", _NEXT_STEP)
    return Path(found)


def _version_of(command: Path) -> int:
    try:
        probe = subprocess.run(
            [str(command), "-version"], capture_output=True, text=True, timeout=_PROBE_DEADLINE_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise HarnessError(f"The Java runtime {command} does not start: {error}.", _NEXT_STEP) from error
    match = _VERSION.search(probe.stderr + probe.stdout)
    if match is None:
        raise HarnessError(f"{command} -version does not tell its version.", _NEXT_STEP)
    old_style = match[1] == "1" and match[2] is not None
    return int(match[2] if old_style else match[1])
