"""A dask cluster of two workers gives the counts of the serial run."""

from __future__ import annotations

from pathlib import Path

import pytest

from service.errors import InvalidValue
from service.simulation.environments import of_means
from service.simulation.runner import cell
from service.simulation.session import Session

pytestmark = [
    pytest.mark.process,
    pytest.mark.filterwarnings("ignore"),  # dask and its web server warn about things that are not ours
]
CELLS = [cell(of_means([0.4, 0.0, 0.1]), policy, 60, 3) for policy in ("simple_tracking", "uniform")]


def test_a_cluster_of_two_workers_gives_the_serial_counts(tmp_path: Path) -> None:
    """Workers in their own processes."""
    distributed = pytest.importorskip("distributed")
    with Session(tmp_path / "serial", runs=800, seed=2, quiet=True) as serial:
        alone = serial.play(CELLS, "serial")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        address = cluster.scheduler_address
        with Session(tmp_path / "cluster", runs=800, seed=2, cluster=address, quiet=True) as spread:
            together = spread.play(CELLS, "cluster")
    assert [result.errors for result in together] == [result.errors for result in alone]


def test_an_address_without_a_scheduler_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a sentence, after a short wait."""
    monkeypatch.setattr("service.simulation.parallel._SECONDS_TO_CONNECT", 1)
    with (
        Session(tmp_path, runs=10, seed=1, cluster="tcp://127.0.0.1:9", quiet=True) as session,
        pytest.raises(InvalidValue, match="No dask scheduler"),
    ):
        session.play(CELLS, "nowhere")
