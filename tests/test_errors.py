"""The exception tree: drawn completely, and answered completely."""

from __future__ import annotations

import re
from collections.abc import Iterator

from service import errors
from service.web.problems import STATUS


def tree(root: type[errors.BestArmError], depth: int = 0) -> Iterator[tuple[int, str]]:
    """All classes below one, depth first, as the docstring draws them."""
    yield depth, root.__name__
    for child in root.__subclasses__():
        yield from tree(child, depth + 1)


def test_every_class_has_its_status_and_code() -> None:
    """Each error but the root has a row in the table of answers, with a code of its own."""
    classes = {name for depth, name in tree(errors.BestArmError) if depth}
    assert {error.__name__ for error in STATUS} == classes
    codes = [code for _, code in STATUS.values()]
    assert len(set(codes)) == len(codes)
    assert all(400 <= status < 600 and re.fullmatch(r"[a-z_]+", code) for status, code in STATUS.values())


def test_the_docstring_draws_the_whole_tree() -> None:
    """The drawing has each class, in its place."""
    drawn = [
        (len(match[1]) // 4, match[2]) for match in re.finditer(r"^((?:[│├└─ ]{4})*)(\w+)$", errors.__doc__ or "", re.MULTILINE)
    ]
    assert drawn == list(tree(errors.BestArmError))
