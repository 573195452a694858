"""The cases of odd bytes are what they are meant to be, and what is smuggled is found."""

from __future__ import annotations

import pytest

from testing.torture.differential import Compared, judge_hidden
from testing.torture.odd_bytes import cases
from testing.torture.raw_requests import LAST, RawCase, raw_case, split_cases
from testing.torture.smuggled_requests import HIDDEN, LAST_NAME, OUTER, PROBE, SYSTEMATIC, bare_case, smuggled_case
from testing.torture.ways_in import WAYS, Heard, Way


def test_cases_are_what_they_are_meant_to_be() -> None:
    """The same number is the same case; in pieces or not; with an end or without."""
    raw = [raw_case(number) for number in range(250)]
    assert raw == [raw_case(number) for number in range(250)]
    assert {len(case.pieces) > 1 for case in raw} == {True, False}
    assert {(case.has_end, case.sent.endswith(LAST)) for case in raw} == {(True, True), (False, False)}


def test_requests_are_cut_at_every_place() -> None:
    """Each of four, and a byte at a time."""
    found = split_cases()
    sent = {case.sent for case in found}
    assert len(sent) == 4
    assert {(case.sent, len(case.pieces[0])) for case in found} == {(one, cut) for one in sent for cut in range(1, len(one))}
    assert {max(map(len, case.pieces)) == 1 for case in found} == {True, False}


def test_each_oddity_hides_a_request_of_its_own() -> None:
    """Whole, with a unit that no other one asks for; with two oddities behind those with one."""
    hiding = [smuggled_case(number) for number in range(0, 2 * SYSTEMATIC, 7)]
    assert all(case.sent.count(b'"unit": "%b"' % str(case.hidden_unit).encode()) == 1 for case in hiding)
    assert len({case.hidden_unit for case in hiding}) == len(hiding)
    assert all(
        bare_case(number).hidden_unit is None and HIDDEN not in bare_case(number).sent for number in range(0, SYSTEMATIC, 50)
    )


@pytest.mark.parametrize("way", WAYS)
def test_few_cases_are_from_everywhere(way: Way) -> None:
    """A third of each kind; hidden requests only where there is a proxy to be deceived."""
    found = [*cases(way, 90)]
    assert len(found) == 90
    assert sum(case.pause_seconds > 0 for case in found) == 30
    assert sum(case.hidden_unit is not None for case in found) == (0 if way == "direct" else 30)


def _heard(*names: bytes) -> Heard:
    answer = b"HTTP/1.1 200 OK\r\nx-request-id: %b\r\ncontent-length: 2\r\n\r\n{}"
    return Heard(b"".join(answer % name for name in names), was_cut=False)


_CASE = RawCase((b"",), hidden_unit="hidden-1")
_PROBED = _heard(PROBE, LAST_NAME)


def _smuggled(heard: Heard, probe: Heard = _PROBED) -> tuple[int, set[str]]:
    found = Compared()
    judge_hidden(found, _CASE, [heard], [probe])
    return len(found.smuggled), found.heard


def test_a_hidden_request_that_a_proxy_saw_is_none() -> None:
    """It has an answer, and so has the one behind it; or nobody heard it."""
    assert _smuggled(_heard(OUTER, HIDDEN, LAST_NAME)) == (0, {"hidden-1"})
    assert _smuggled(_heard(OUTER, LAST_NAME)) == (0, set())


def test_an_answer_that_the_next_one_gets_is_found() -> None:
    """On the same connection, where the last request gets it; and on another."""
    assert _smuggled(_heard(OUTER, HIDDEN)) == (1, set())
    assert _smuggled(_heard(OUTER, LAST_NAME), _heard(HIDDEN, PROBE)) == (1, set())
