"""Many draws at once are what so many single draws are, whatever the policy, the expiry and the number of arms."""

from __future__ import annotations

import msgspec
import pytest

from service.domain import (
    Arm,
    ArmRecord,
    ArmStatistics,
    Assignment,
    Experiment,
    Expiry,
    PolicyKind,
    PolicySpec,
    Progress,
    RewardSpec,
)
from service.engine.batch_draws import draw_many
from service.engine.ledger import Ledger
from service.storage.groups.writes import stages_of

_UNITS = (None, "a", "b", None, "a") * 9


def _ledger(policy: PolicyKind, expiry: Expiry | None, arms: int, floor: float) -> Ledger:
    """Its second arm is disabled, so that places and positions differ; a floor is the last arm's."""
    spec = PolicySpec(policy, seed=7, keeps_floors=floor > 0)
    experiment = Experiment(1, "e", "e", "", spec, RewardSpec(), expiry, False, 0.95, None, "running", None, 0)
    records = [
        ArmRecord(
            Arm(at, f"arm-{at}", "", None, min_share=floor * (at == arms - 1), status="disabled" if at == 1 else "active"),
            ArmStatistics(),
        )
        for at in range(arms)
    ]
    return Ledger(Progress(experiment, version=1, as_of=50, draws=0, epoch=1), records)


def _without_token(drawn: Assignment) -> Assignment:
    return msgspec.structs.replace(drawn, token=0)


def _stored(ledger: Ledger) -> object:
    """All that would be written, but for the tokens, which are random."""
    changes = ledger.take_changes()
    assert changes is not None
    changes.drawn = [_without_token(one) for one in changes.drawn]
    return stages_of([changes])


@pytest.mark.parametrize("policy", ["simple_tracking", "almost_tracking", "uniform"])
@pytest.mark.parametrize("expiry", [None, Expiry(0.5, None), Expiry(0.5, 0.0)])
@pytest.mark.parametrize(("arms", "floor"), [(4, 0.0), (4, 0.2), (40, 0.0)])
def test_a_batch_of_draws_is_one_draw_after_the_other(policy: PolicyKind, expiry: Expiry | None, arms: int, floor: float) -> None:
    """Same arms, numbers, times and rows; between batches rewards come in, some of them not counted yet, and later asks agree."""
    together, alone = (_ledger(policy, expiry, arms, floor) for _ in range(2))
    for now in (40, 60, 70):  # the first is before the ledger's own time
        many = draw_many(together, _UNITS, now)
        single = [alone.draw(unit, None, now) for unit in _UNITS]
        assert [_without_token(one) for one in many] == [_without_token(one) for one in single]
        assert together.progress == alone.progress
        assert together.statistics == alone.statistics
        assert together.seen.by_unit == alone.seen.by_unit
        assert [*together.recent_draws] == [*alone.recent_draws]
        assert _stored(together) == _stored(alone)
        for drawn, same in list(zip(many, single, strict=True))[::3]:
            together.step(drawn, "reward", float(drawn.arm % 2), now)
            alone.step(same, "reward", float(same.arm % 2), now)
    assert together.draw(None, None, 80).arm == alone.draw(None, None, 80).arm
    assert len({one.token for one in together.recent_draws.values()}) == 3 * len(_UNITS) + 1


def test_no_units_draw_nothing() -> None:
    """An empty batch leaves the ledger as it is."""
    ledger = _ledger("simple_tracking", None, 4, 0.0)
    before = ledger.progress
    assert draw_many(ledger, [], 60) == []
    assert ledger.progress == before
    assert ledger.take_changes() is None
