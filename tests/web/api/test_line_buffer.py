"""A body in pieces is the same lines as in one."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from service.domain.limits import LONGEST_LINE_BYTES
from service.web.api.line_buffer import LineBuffer

_BODIES = st.lists(st.sampled_from([b"a", b"bc", b"\n", b"\n\n", b"x" * 5_000, b"y" * (LONGEST_LINE_BYTES + 9)])).map(b"".join)


def _read(body: bytes, cuts: list[int], takes: list[bool]) -> list[bytes]:
    buffer, taken = LineBuffer(), b""
    places = sorted({cut % (len(body) + 1) for cut in cuts} | {0, len(body)})
    for number, (start, end) in enumerate(pairwise(places)):
        buffer.add(body[start:end])
        assert len(buffer) <= len(body[start:end]) + 2 * LONGEST_LINE_BYTES or not all(takes or [False])
        if takes and takes[number % len(takes)]:
            taken += buffer.take()
    return (taken + buffer.take_all()).split(b"\n")


@given(_BODIES, st.lists(st.integers(0, 10**6)), st.lists(st.booleans()))
def test_lines_are_the_same_however_they_are_cut(body: bytes, cuts: list[int], takes: list[bool]) -> None:
    """Those that are too long are still too long, and still one line each."""
    lines = _read(body, cuts, takes)
    expected = body.split(b"\n")
    assert len(lines) == len(expected)
    for line, whole in zip(lines, expected, strict=True):
        if len(whole) <= LONGEST_LINE_BYTES:
            assert line == whole
        else:
            assert len(line) > LONGEST_LINE_BYTES
            assert whole.startswith(line)


def test_a_line_without_an_end_is_not_kept() -> None:
    """However much comes of it."""
    buffer = LineBuffer()
    for _ in range(100):
        buffer.add(b"x" * 65_536)
        assert len(buffer) <= LONGEST_LINE_BYTES + 1
    buffer.add(b"\nrest")
    assert len(buffer.take()) == LONGEST_LINE_BYTES + 2
    assert buffer.take_all() == b"rest"
