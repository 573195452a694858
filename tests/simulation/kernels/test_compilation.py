"""Machine code of older versions does not pile up in the user's cache."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np

from service.policy.base import Floats
from service.simulation.kernels.compilation import compiled, open_folder


def test_a_new_folder_removes_the_oldest(tmp_path: Path) -> None:
    """The three used last stay, and what is not ours."""
    for age in range(6):
        folder = tmp_path / f"kernels-{age}"
        folder.mkdir()
        (folder / "code").write_text("")
        os.utime(folder, (1_000_000 - age, 1_000_000 - age))
    (tmp_path / "notes").mkdir()
    open_folder(tmp_path / "kernels-new")
    assert sorted(found.name for found in tmp_path.iterdir()) == ["kernels-0", "kernels-1", "kernels-2", "kernels-new", "notes"]


def test_opening_again_removes_nothing(tmp_path: Path) -> None:
    """Only a new version makes room."""
    for name in "abcdef":
        (tmp_path / f"kernels-{name}").mkdir()
    open_folder(tmp_path / "kernels-a")
    assert len(list(tmp_path.iterdir())) == 6


def test_a_kernel_survives_the_loss_of_its_folder() -> None:
    """Another version may remove the folder while this one runs: the next kernel is compiled all the same."""

    def double(values: Floats) -> float:
        return float(2.0 * values.sum())

    made = compiled(double)
    folder = Path(made._cache.cache_path)  # type: ignore[attr-defined]  # noqa: SLF001 - where numba keeps this file's kernels
    shutil.rmtree(folder)
    assert made(np.ones(3)) == 6.0
    assert list(folder.iterdir())
