"""Certificates of random histories, verified by both verifiers; corrupted ones must be refused.

    python tools/verify_certificates.py --seeds 0..99999 --processes 2
    python tools/verify_certificates.py --seeds 0..99999 --processes 2 --model kv
    python tools/verify_certificates.py --seeds 0..99999 --processes 2 --model queue
    python tools/verify_certificates.py --seeds 0..99999 --processes 2 --model lists

Each seed is one small history of `fuzz_linearizability`. The port of Porcupine decides it; the frontier of the kernel
and that of plain Python must agree, at the same return. The certificate of each illegal history, and the order of each
legal one, must be accepted by the verifier and by its twin. Then every field of the certificate is changed in every
way that `corruptions` knows: both verifiers must refuse each, unless an operation was changed so that the history still
is illegal, as the port says. Histories of `fuzz_objects` have certificates of their monitor or of the search, and
other changes (`corrupted_certificates`). Transactions on `lists` and `registers` are those of `fuzz_transactions`, each
history at one level: exhaustive search must agree with the certificate (`corrupted_transactions`). The first complaint
is printed with its seed, and the program ends with 1.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial

from corrupted_certificates import complaints_about_object
from corrupted_transactions import KINDS, complaints_about_transactions
from fuzz_linearizability import random_history, random_texts
from judged_seeds import judge_seeds, options

from faultline.checkers.linearizability.certificates import Certificate, Configuration, Configurations
from faultline.checkers.linearizability.data_types import MODEL_FACTORIES
from faultline.checkers.linearizability.engine.batch import check_columns
from faultline.checkers.linearizability.engine.columns import Columns
from faultline.checkers.linearizability.engine.native import engine_in_use
from faultline.checkers.linearizability.engine.proofs import fault_of_set_natively, frontier
from faultline.checkers.linearizability.engine.registers import columns_of
from faultline.checkers.linearizability.engine.texts import text_columns
from faultline.checkers.linearizability.kv import referee_kv
from faultline.checkers.linearizability.models import KV_MODEL, referee_operations, register_model
from faultline.checkers.linearizability.value_rules import ValueRules
from faultline.checkers.linearizability.verifier import fault_of
from faultline.checkers.linearizability.verify import fault_of_set
from faultline.checkers.porcupine import check_operations

__all__ = ["complaints_about", "corruptions", "main"]


def complaints_about(seed: int, model: str, counts: Counter[str]) -> list[str]:
    """Return what is wrong with the certificate of the history of `seed`, in words; `counts` counts what was done."""
    if model in MODEL_FACTORIES:
        return complaints_about_object(seed, model, counts)
    if model in KINDS:
        return complaints_about_transactions(seed, model, counts)
    if model == "kv":
        texts = random_texts(seed)
        columns, is_legal = text_columns([(None, texts)]), check_operations(KV_MODEL, referee_kv(texts))
    else:
        history = random_history(seed)
        columns, is_legal = columns_of(history), check_operations(register_model(), referee_operations(history))
    if is_legal:
        order = check_columns(columns)[0].order
        counts["orders"] += 1
        fault = fault_of(Certificate(columns, order=order))
        return [f"its order is refused: {fault}"] if fault else []
    made, plain = frontier(columns), frontier(columns, engine="python")
    counts["sets"] += 1
    counts["members"] += len(made.configurations)
    if not made.legality == plain.legality == "Illegal" or made.furthest != plain.furthest:
        return [f"the frontiers end with {made.legality} at {made.furthest} and {plain.legality} at {plain.furthest}"]
    faults = [_faults(columns, configurations) for configurations in (made.configurations, plain.configurations)]
    if any(any(each) for each in faults):
        return [f"its set is refused: {faults}"]
    complaints: list[str] = []
    for what, corrupted in corruptions(columns, made.configurations, random.Random(seed)):
        counts["corrupted sets"] += 1
        plainly, natively = _faults(columns, corrupted)
        if not plainly or not natively:
            complaints.append(f"a set is accepted with {what}: {plainly!r}, {natively!r}")
    return complaints


def _faults(columns: Columns, configurations: Configurations) -> tuple[str, str]:
    plainly = fault_of_set(ValueRules(columns), configurations)
    return plainly, fault_of_set_natively(columns, configurations) if engine_in_use().name == "native" else plainly


def corruptions(
    columns: Columns, configurations: Configurations, rng: random.Random
) -> Iterator[tuple[str, Configurations]]:
    """Yield sets that differ from `configurations` in one field of one member, with the difference in words.

    A frontier's set holds no member that it could do without, so each change of one must be refused, but one: a member
    that claims to have used fewer pending operations says more, and may be right.
    """
    members = [configurations[k] for k in range(len(configurations))]
    k = rng.randrange(len(members))
    member = members[k]
    operation = rng.randrange(len(columns))

    def with_member(changed: Configuration) -> Configurations:
        return Configurations.of([*members[:k], changed, *members[k + 1 :]])

    yield "no members", Configurations.of([])
    yield f"member {k} missing", Configurations.of([*members[:k], *members[k + 1 :]])
    for rank in (member.rank - 1, member.rank + 1, len(columns), -1):
        yield f"rank {rank} in member {k}", with_member(member._replace(rank=rank))
    for state in sorted({-2, -1, *range(len(columns.values)), len(columns.values)} - {member.state}):
        yield f"state {state} in member {k}", with_member(member._replace(state=state))
    for gone in member.ahead:
        ahead = tuple(i for i in member.ahead if i != gone)
        yield f"operation {gone} not ahead in member {k}", with_member(member._replace(ahead=ahead))
    for added in (operation, -1, len(columns), *member.ahead[:1]):
        yield f"operation {added} ahead in member {k}", with_member(member._replace(ahead=(*member.ahead, added)))
        yield f"operation {added} used in member {k}", with_member(member._replace(used=(*member.used, added)))


def _examine(model: str, seeds: Sequence[int]) -> tuple[list[str], Counter[str]]:
    counts: Counter[str] = Counter()
    complaints = [f"seed {seed}: {complaint}" for seed in seeds for complaint in complaints_about(seed, model, counts)]
    return complaints, counts


def main() -> int:
    """Examine the histories of all seeds."""
    parser = options(__doc__)
    parser.add_argument("--model", choices=("cas-register", "kv", *MODEL_FACTORIES, *KINDS), default="cas-register")
    asked = parser.parse_args()
    return judge_seeds(partial(_examine, asked.model), asked)


if __name__ == "__main__":
    sys.exit(main())
