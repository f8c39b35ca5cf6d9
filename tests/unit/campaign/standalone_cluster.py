"""A standalone Spark cluster on loopback: a master and two workers, each a process of its own, with a secret."""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pyspark
from process_table import descendants_of

from faultline.campaign.java import find_java

__all__ = ["StandaloneCluster", "standalone_cluster"]

_LIMIT_S = 120
_LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class StandaloneCluster:
    """A running cluster: its URL, its secret, its processes, and the environment in which a driver can use it."""

    master: str
    secret: str
    workers: tuple[subprocess.Popen[bytes], ...]
    environment: dict[str, str]

    def kill_worker(self, number: int) -> None:
        """End a worker and its executor at once; what Python runs there lives on until it notices."""
        worker = self.workers[number]
        for process in (worker.pid, *filter(_is_java, descendants_of(worker.pid))):
            with suppress(ProcessLookupError):
                os.kill(process, 9)


@contextmanager
def standalone_cluster(folder: Path) -> Iterator[StandaloneCluster]:
    """A master and two workers of one core each, with their files below `folder`; ended by their ids on leaving."""
    secret = secrets.token_hex(16)
    properties = folder / "spark-defaults.conf"
    properties.touch(0o600)
    properties.write_text(f"spark.authenticate true\nspark.authenticate.secret {secret}\n")
    port = _free_port()
    master = f"spark://{_LOOPBACK}:{port}"
    environment = {
        "JAVA_HOME": str(find_java().home),
        "SPARK_LOCAL_IP": _LOOPBACK,
        "SPARK_CONF_DIR": str(folder),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "PYSPARK_PYTHON": sys.executable,
    }
    common = ["--host", _LOOPBACK, "--webui-port", "0", "--properties-file", str(properties)]
    with ExitStack() as ending:

        def start(name: str, kind: str, *arguments: str) -> subprocess.Popen[bytes]:
            spark_class = Path(pyspark.__file__).parent / "bin" / "spark-class"
            command = [str(spark_class), f"org.apache.spark.deploy.{kind}", *common, *arguments]
            with (folder / f"{name}.log").open("wb") as log:
                process = subprocess.Popen(command, env=os.environ | environment, stdout=log, stderr=log)
            ending.callback(_end, process)
            return process

        def has_said(name: str, words: str) -> Callable[[], bool]:
            return lambda: words in (folder / f"{name}.log").read_text("utf-8", "replace")

        start("master", "master.Master", "--port", str(port))
        _wait(has_said("master", "I have been elected leader"), "The master does not come up.", folder)
        sizes = ["--cores", "1", "--memory", "1g", "--work-dir", str(folder / "work")]
        workers = tuple(start(f"worker{number}", "worker.Worker", *sizes, master) for number in (1, 2))
        for number in (1, 2):
            _wait(has_said(f"worker{number}", "Successfully registered with master"), "A worker is missing.", folder)
        yield StandaloneCluster(master, secret, workers, environment)


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind((_LOOPBACK, 0))
        port: int = listener.getsockname()[1]
        return port


def _wait(is_so: Callable[[], bool], otherwise: str, folder: Path) -> None:
    limit_s = time.monotonic() + _LIMIT_S
    while not is_so():
        if time.monotonic() > limit_s:
            logs = "\n".join(path.read_text("utf-8", "replace")[-2_000:] for path in sorted(folder.glob("*.log")))
            raise AssertionError(f"{otherwise}\n{logs}")
        time.sleep(0.05)


def _is_java(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/comm").read_text().strip() == "java"
    except OSError:
        return False


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a master or worker, and everything that it has started and that has not ended with it."""
    below = descendants_of(process.pid)
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(10)
    for each in (process.pid, *below):
        with suppress(ProcessLookupError):
            os.kill(each, 9)
    process.wait()
