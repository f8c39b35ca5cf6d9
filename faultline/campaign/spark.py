"""A Spark session for a campaign: quiet, without a web interface, and removed completely when it is closed.

All output of Spark goes to `work/spark.log` in the campaign's folder. On the embedded master (`local[*]`) tasks run
in workers of this very interpreter; a remote master is sent the package as a zip file and must see the store under the
same path. Spark Connect (`sc://`) is refused: its sessions cannot be told where to find the package.

Spark's processes authenticate each other with a secret. Embedded, on YARN and on Kubernetes Spark makes one for
each session; a standalone cluster has one of its own, which Spark reads from `$SPARK_CONF_DIR/spark-defaults.conf`.
This module never sees it, and so it reaches no command line and no log.
"""

from __future__ import annotations

import logging
import os
import re
import signal
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from faultline.campaign.java import find_java
from faultline.harness.errors import HarnessError, UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["DEFAULT_MASTER", "package_zip", "refuse_unusable_master", "spark_session"]

DEFAULT_MASTER = "local[*,4]"
"""All cores of this machine, and four attempts at each task, of which `local[*]` gives it one."""
_STOP_DEADLINE_S = 20
_JVM_OPTIONS = '-XX:TieredStopAtLevel=1 -XX:+UseSerialGC "-Dlog4j2.configurationFile={log4j}" "-Djava.io.tmpdir={work}"'
"""The options of Java, quoted, as a folder may have a space in its name; Java writes to the campaign's folder."""
_AUTHENTICATE, _SECRET = "spark.authenticate", "spark.authenticate.secret"
_SETTING = re.compile(r"\s*([^\s#=:]+)\s*[\s=:]\s*(.*)")
_MASTERS = ("local", "spark://", "k8s://", "yarn", "mesos://")

_LOG4J = """\
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex
"""


@contextmanager
def spark_session(master: str, work: Path) -> Iterator[SparkSession]:
    """Return a session on `master` with its scratch files below `work`; stopped, with its Java process, on leaving.

    Raise UsageError for an invalid master, HarnessError when Java or Spark does not start.
    """
    refuse_unusable_master(master)
    java = find_java()
    work.mkdir(parents=True, exist_ok=True)
    environment = {"JAVA_HOME": str(java.home), "PYSPARK_PYTHON": _python(master), **_address(master)}
    with ExitStack() as closing:
        closing.enter_context(_environment(environment))
        session = closing.enter_context(_running(master, work))
        if not _is_local(master):
            session.sparkContext.addPyFile(str(package_zip(work / "faultline.zip")))
        yield session


def refuse_unusable_master(master: str) -> None:
    """Raise UsageError unless `master` looks like a Spark master that campaigns can use, and is safe to talk to."""
    if not master.startswith(_MASTERS):
        raise UsageError(
            f"{master!r} is not a Spark master Faultline can use.",
            "Use local[*,4], local[N,4], spark://HOST:PORT, k8s://… or yarn.",
        )
    if master.startswith("spark://") and not _own_settings().keys() & {_AUTHENTICATE, _SECRET}:
        raise UsageError(
            f"The secret of the cluster at {master} is not known on this machine.",
            f"Name it as {_SECRET} in spark-defaults.conf in the folder SPARK_CONF_DIR; a cluster without one is used "
            f"with the line `{_AUTHENTICATE} false` there. See docs/how-to/spark-cluster.md.",
        )


def _own_settings() -> dict[str, str]:
    """Return the settings of the user, which Spark reads by itself: those in `$SPARK_CONF_DIR/spark-defaults.conf`."""
    folder = os.environ.get("SPARK_CONF_DIR")
    if not folder:
        return {}
    try:
        lines = (Path(folder) / "spark-defaults.conf").read_text("utf-8").splitlines()
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"SPARK_CONF_DIR is {folder}, where spark-defaults.conf cannot be read: {error}.",
            "Unset it, or repair that file.",
        ) from error
    pairs = (_SETTING.match(line) for line in lines)
    return {pair[1]: pair[2].strip() for pair in pairs if pair}


def package_zip(target: Path) -> Path:
    """Return the whole `faultline` package as a zip file that executors can import from."""
    package = Path(__file__).resolve().parent.parent
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(package.rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts:
                archive.write(file, file.relative_to(package.parent))
    return target


def _is_local(master: str) -> bool:
    return master.startswith("local") and not master.startswith("local-cluster")


def _python(master: str) -> str:
    """Return the Python of workers: on this machine this interpreter, on a cluster PYSPARK_PYTHON or its `python3`."""
    remote = not master.startswith("local")
    return os.environ.get("PYSPARK_PYTHON", "python3") if remote else sys.executable


def _address(master: str) -> dict[str, str]:
    """Return the address of Spark on this machine, as it would resolve the host's name, which some machines cannot."""
    return {"SPARK_LOCAL_IP": os.environ.get("SPARK_LOCAL_IP", "127.0.0.1")} if _is_local(master) else {}


def _settings(master: str, work: Path) -> dict[str, str]:
    log4j = work / "log4j2.properties"
    log4j.write_text(_LOG4J, "utf-8")
    settings = {
        "spark.master": master,
        "spark.app.name": "faultline",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.driver.extraJavaOptions": _JVM_OPTIONS.format(log4j=log4j.resolve().as_uri(), work=work.resolve()),
        "spark.sql.warehouse.dir": str((work / "warehouse").resolve()),
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.session.timeZone": "UTC",
    }
    if _AUTHENTICATE not in _own_settings():
        settings[_AUTHENTICATE] = "true"
    if master.startswith("local"):
        settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    return settings


@contextmanager
def _running(master: str, work: Path) -> Iterator[SparkSession]:
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    _silence_driver_loggers()
    log_path = work / "spark.log"
    settings = SparkConf(loadDefaults=False).setAll(list(_settings(master, work).items()))
    launch: Any = launch_gateway
    gateway: Any = None
    with log_path.open("ab") as log, _remembered_processes() as started:
        try:
            gateway = launch(settings, popen_kwargs={"stdout": log, "stderr": log})
            with _own_interrupt_handler():
                context = SparkContext(conf=settings, gateway=gateway)
        except BaseException as error:
            for process in started:
                process.kill()
                process.communicate()
            if isinstance(error, Exception):
                raise _did_not_start(master, log_path, error) from error
            raise
        try:
            yield SparkSession(context)
        except BaseException:
            _forsake(context, gateway)
            raise
        else:
            _stop(context)
        finally:
            SparkContext._gateway = SparkContext._jvm = None
            SparkSession._instantiatedSession = None
            _end(gateway)


def _forsake(context: Any, gateway: Any) -> None:
    """Abandon Spark at once: an interrupted call, or a job without workers, may never be answered."""
    context._accumulatorServer.handle_error = lambda *_: None
    gateway.proc.kill()
    context._jsc = None
    context.stop()


def _stop(context: Any) -> None:
    """Stop Spark in good order; when it does not answer, `_end` kills its process in any case."""
    stopping = threading.Thread(target=context.stop, name="faultline-stop", daemon=True)
    stopping.start()
    stopping.join(_STOP_DEADLINE_S)


def _silence_driver_loggers() -> None:
    """Silence the loggers of PySpark and Py4J, which repeat every exception on standard error."""
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger", "py4j"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    logging.getLogger().addFilter(_is_not_of_py4j)


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    """Return whether a record is not from Py4J, which logs some messages under the root logger's name."""
    return "py4j" not in Path(record.pathname).parts


def _did_not_start(master: str, log_path: Path, error: Exception) -> HarnessError:
    lines = [line.strip() for line in log_path.read_text("utf-8", "replace").splitlines() if "ERROR" in line]
    cause = lines[-1] if lines else f"{type(error).__name__}: {error}".splitlines()[0]
    return HarnessError(
        f"Spark did not start on master {master}: {cause[:300]}",
        f"Its log is {log_path}; `faultline doctor` tries Java and Spark one by one.",
    )


@contextmanager
def _remembered_processes() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Yield the list of processes that PySpark starts in the block: it reveals its Java process only once that
    answers."""
    from pyspark import java_gateway

    module: Any = java_gateway
    started: list[subprocess.Popen[bytes]] = []

    def remember(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
        started.append(subprocess.Popen(*arguments, **options))
        return started[-1]

    module.Popen = remember
    try:
        yield started
    finally:
        module.Popen = subprocess.Popen


def _end(gateway: Any) -> None:
    """Close the sockets to the Java process and wait for it, so that no process stays behind."""
    process = gateway.proc
    with suppress(Exception):
        gateway.shutdown()
    with suppress(OSError):
        process.stdin.close()
    try:
        process.wait(_STOP_DEADLINE_S)
    except Exception:
        process.kill()
        process.wait()


@contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def _own_interrupt_handler() -> Iterator[None]:
    """Restore the handler for Ctrl-C after the block: PySpark installs its own and never removes it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
