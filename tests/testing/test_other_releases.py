"""Other releases than this checkout, as far as getting at them can fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from testing.other_releases import Release, install_release


@pytest.mark.process
def test_a_clone_without_the_commit_says_so(tmp_path: Path) -> None:
    """In a sentence that names the commit, the page that wants it, and what mends it; nothing is skipped."""
    commit = "0123456789" * 4
    with pytest.raises(RuntimeError, match=f"commit {commit}, as docs/releases.md says.*git fetch --unshallow"):
        install_release(Release(commit, "0001"), tmp_path)
