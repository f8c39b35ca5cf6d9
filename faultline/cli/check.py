"""`faultline check`: judge recorded histories, Faultline's own or another tool's."""

from __future__ import annotations

from pathlib import Path

import click

from faultline.harness.verdict import CheckResult, exit_code, merge

__all__ = ["command"]


@click.command("check")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path, dir_okay=False))
@click.option("--format", "format_name", default="faultline", show_default=True, help="Format of the files.")
@click.option("--model", help="Model to check against [default: the format's own].")
@click.option("--timeout", "timeout_s", type=float, help="Seconds to spend on each file before answering unknown.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per file.")
def command(
    files: tuple[Path, ...], format_name: str, model: str | None, timeout_s: float | None, as_json: bool
) -> int:
    """Check the histories in FILES for linearizability.

    Ends with 1 when any of them is illegal, 3 when one could not be decided, 0 when all are linearizable.
    """
    from faultline.checkers.files import check_file

    results = []
    for file in files:
        result = check_file(file, format_name, model, timeout_s=timeout_s)
        results.append(result)
        click.echo(_line(file, result, as_json))
    return exit_code(merge(result.verdict for result in results))


def _line(file: Path, result: CheckResult, as_json: bool) -> str:
    if as_json:
        import msgspec

        return (msgspec.json.encode({"file": str(file)} | msgspec.to_builtins(result))).decode()
    return f"{file}: {result.verdict.value}: {result.sentence}"
