"""The short way for asks and tells, held against the same application under uvicorn as it comes: the same bytes to both."""

from __future__ import annotations

import pytest

from testing.databases import NewDatabase
from testing.torture.differential import both, compare
from testing.torture.raw_requests import LAST, raw_case

pytestmark = pytest.mark.process
_CASES = range(250)


def test_the_same_bytes_have_the_same_answers_and_the_same_effect(new_database: NewDatabase) -> None:
    """Requests in any pieces, several at once, framed oddly, with bodies that are nearly right."""
    with both(new_database(), new_database()) as servers:
        found = compare(servers, _CASES)
    assert found.failures == []
    assert found.differences == []
    assert {200, 201, 400, 404, 409, 422} <= set(found.statuses)


def test_cases_are_what_they_are_meant_to_be() -> None:
    """The same number is the same case; in pieces or not; with an end or without."""
    cases = [raw_case(number) for number in _CASES]
    assert cases == [raw_case(number) for number in _CASES]
    assert {len(case.pieces) > 1 for case in cases} == {True, False}
    assert {case.sent.endswith(LAST) for case in cases} == {True, False}
