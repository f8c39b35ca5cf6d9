"""Building the native kernel: `native/kernel.c` becomes `_kernel`, an extension module through cffi's API mode.

The build hook of the package runs this at installation. Nothing is needed but a C compiler, Python's headers and
cffi; where one of them is missing, `build` says why and Faultline runs on the same algorithms in plain Python. The
module keeps to Python's stable interface, so one file serves every version from 3.11 on.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

__all__ = ["MODULE_FILE", "KernelBuildError", "build"]

HERE = Path(__file__).resolve().parent
MODULE_FILE = "_kernel.abi3.so"
SECONDS_MAX = 300


class KernelBuildError(Exception):
    """The kernel cannot be built on this machine; the text says why."""


def build(target: Path = HERE) -> Path:
    """Compile the kernel into the folder `target` and return the module's path. Raises KernelBuildError."""
    if not sys.platform.startswith(("linux", "darwin")):
        raise KernelBuildError(f"the kernel is not built on {sys.platform}")
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch) / "_kernel.c"
        _write_module(source)
        module = Path(scratch) / MODULE_FILE
        _run([*_linker(), *_flags(), str(source), "-o", str(module)])
        target.mkdir(parents=True, exist_ok=True)
        beside = target / f".{MODULE_FILE}.new"
        beside.write_bytes(module.read_bytes())
        beside.chmod(0o755)
        return beside.replace(target / MODULE_FILE)


def _write_module(source: Path) -> None:
    """Write the C source of the extension module, which includes the kernel's own, to `source`."""
    try:
        from cffi import FFI  # type: ignore[import-untyped]  # it comes without types
    except ImportError as error:
        raise KernelBuildError("cffi is not installed") from error
    ffi = FFI()
    ffi.cdef((HERE / "native" / "kernel.h").read_text(encoding="utf-8"))
    ffi.set_source("_kernel", '#include "kernel.c"', py_limited_api=True)
    ffi.emit_c_code(str(source))


def _linker() -> list[str]:
    """Return the command that links a module as this Python was linked."""
    command = sysconfig.get_config_var("LDSHARED")
    if not command:
        raise KernelBuildError("this Python does not say how extension modules are linked")
    return shlex.split(str(command))


def _flags() -> list[str]:
    headers = sysconfig.get_path("include")
    if not (Path(headers) / "Python.h").exists():
        raise KernelBuildError(f"Python's headers are not in {headers}")
    return ["-O2", "-fPIC", "-DPy_LIMITED_API=0x030b0000", f"-I{headers}", f"-I{HERE / 'native'}"]


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise KernelBuildError(f"{command[0]} could not be run: {error}") from error
    if done.returncode:
        raise KernelBuildError(f"{command[0]} failed: {done.stderr.strip()[-500:]}")


if __name__ == "__main__":
    build()
