"""What the paper says of the figures that it shows without numbers, as comparisons of error counts.

"Errs less" holds if every comparison goes that way and Fisher's exact test parts the two counts at 1%; it fails if one
goes the other way; it is undecided if they all go that way and one not clearly. "Comparable" is taken to mean that
neither error is more than a quarter larger than the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from service.simulation.kernels.catalogue import contender
from studies.count_agreement import two_sample_p

if TYPE_CHECKING:
    from collections.abc import Sequence

    from service.simulation.session import Result

_CLEAR = 0.01
_COMPARABLE = 1.25
_OURS = ("simple_tracking", "almost_tracking")
_REJECTS = ("cr_a", "cr_c")


def judge(study: str, results: Sequence[Result]) -> list[dict[str, Any]]:
    """The statements about this study's instances, each with a verdict and what speaks against it."""
    counts: dict[str, dict[str, tuple[int, int]]] = {}
    for r in results:
        # CR with another start is still CR in the paper's text.
        name = r.cell.policy.split(":theta0", maxsplit=1)[0]
        counts.setdefault(r.cell.environment.label, {})[name] = (r.final, r.runs)
    if study == "short-horizon":
        return [_errs_less(label, found, ("sr", *_OURS), _REJECTS) for label, found in counts.items()]
    verdicts = [_errs_less(label, found, _OURS, ("sr", "sh", "dsr", "dsh")) for label, found in counts.items()]
    if "open_bandit" in counts:
        verdicts.append(_errs_less("open_bandit", counts["open_bandit"], _OURS, _REJECTS))
    if "movielens" in counts:
        verdicts.append(_comparable("movielens", counts["movielens"]))
    return verdicts


def _title(policy: str) -> str:
    return contender(policy).title


def _titles(policies: Sequence[str]) -> str:
    return ", ".join(_title(policy) for policy in policies)


def _errs_less(label: str, found: dict[str, tuple[int, int]], better: Sequence[str], worse: Sequence[str]) -> dict[str, Any]:
    """Each of `better` errs less than each of `worse`."""
    text = f"{_titles(better)} err less than {_titles(worse)}"
    against, unclear = [], []
    for low in better:
        for high in worse:
            if low not in found or high not in found:
                unclear.append(f"{_title(low)} or {_title(high)} not played")
                continue
            (a, n), (b, m) = found[low], found[high]
            p = two_sample_p(a, n, b, m)
            said = f"{_title(low)} {a / n:.4f}, {_title(high)} {b / m:.4f} (p = {p:.2g})"
            if a / n >= b / m:
                against.append(said)
            elif p >= _CLEAR:
                unclear.append(said)
    verdict = "not reproduced" if against else "undecided" if unclear else "reproduced"
    return {"instance": label, "claim": text, "verdict": verdict, "exceptions": against or unclear}


def _comparable(label: str, found: dict[str, tuple[int, int]]) -> dict[str, Any]:
    """CR errs about as much as the tracking policies."""
    apart = []
    for ours in _OURS:
        for other in _REJECTS:
            if ours in found and other in found:
                (a, n), (b, m) = found[ours], found[other]
                ratio = ((a + 0.5) / n) / ((b + 0.5) / m)
                if not 1.0 / _COMPARABLE <= ratio <= _COMPARABLE:
                    apart.append(f"{_title(ours)} {a / n:.4f}, {_title(other)} {b / m:.4f}")
    text = f"{_titles(_REJECTS)} are comparable to {_titles(_OURS)}"
    return {"instance": label, "claim": text, "verdict": "not reproduced" if apart else "reproduced", "exceptions": apart}
