"""`faultline evidence`: the known behaviour of real stores, reproduced."""

from __future__ import annotations

from pathlib import Path

import click

from faultline.cli.options import output_option
from faultline.cli.output import say
from faultline.cli.sealed_outcome import Sealed, handed_over
from faultline.harness.world.hosts.evidence.cases import Case, case_names, load_case

__all__ = ["command"]


@click.command("evidence")
@click.argument("name", required=False)
@click.option("--hosts", metavar="HOSTS", default="", help="Hosts in place of namespaces of this machine: ssh:FILE.")
@click.option("--every-seed", is_flag=True, help="Do not stop at the first seed that shows an expected violation.")
@output_option
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def command(name: str | None, hosts: str, every_seed: bool, output: Path, as_json: bool) -> Sealed | int:
    """Reproduce the claim NAME about a real store, such as that it loses a write on a disk that lies.

    Without NAME, it lists the claims. Each takes a few runs on hosts. Ends with 0 when the runs confirm the claim, with
    1 when they violate what it says holds, with 3 when they do not show the violation that it names, and with 4 when
    one of them could not be judged.
    """
    if name is None:
        return _list(as_json)
    if not hosts:
        from faultline.harness.world.hosts.namespaces.rootless import enter_user_namespace

        enter_user_namespace(environment=handed_over)
    return _reproduce(load_case(name), hosts, every_seed, output, as_json)


def _list(as_json: bool) -> int:
    cases = [load_case(name) for name in case_names()]
    if as_json:
        import msgspec

        say(msgspec.json.encode(cases))
    else:
        for case in cases:
            say(f"{case.name}: {case.claim}\n  expects {_expectation(case)}; {case.command}")
    return 0


def _reproduce(case: Case, hosts: str, every_seed: bool, output: Path, as_json: bool) -> Sealed:
    from faultline.cli.reproduce import outcome_of, runs_of

    say(f"{case.claim}\n  expected: {_expectation(case)}", err=as_json)
    runs = []
    for folder, judgement in runs_of(case, output, hosts=hosts, every_seed=every_seed):
        runs.append((folder, judgement))
        say(f"  seed {judgement.seed}: {judgement.verdict.value}: {judgement.sentence}", err=as_json)
        say(f"    {folder}", err=as_json)
    outcome = outcome_of(case, runs)
    if as_json:
        import msgspec

        say(msgspec.json.encode(outcome))
    else:
        say("As expected." if outcome.borne_out else "NOT as expected.")
    seeds = tuple(f"seed {seed}" for seed in outcome.tried)
    return Sealed(verdict=outcome.verdict.value, checks_due=seeds, checks_ran=seeds)


def _expectation(case: Case) -> str:
    if case.expected == "pass":
        return "no violation with any seed"
    return f"a violation{f' ({case.anomaly})' if case.anomaly else ''} with at least one seed"
