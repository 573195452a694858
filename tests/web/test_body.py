"""A body that looks plain from its bytes holds nothing that would be refused."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from service.web.body import parse_json, refuse_unstorable
from service.web.problems import BadRequest

_texts = st.text(st.characters(exclude_categories=[]), max_size=5)
_numbers = st.sampled_from(["0", "-1", "1.5", "1e3", "1e400", "-1E+400", "1e0400", "9" * 400, "0.1e999", "1e-400"])
_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), _texts),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(_texts, inner, max_size=3)),
    max_leaves=8,
)


def _refused(parsed: object) -> bool:
    try:
        refuse_unstorable(parsed)
    except BadRequest:
        return True
    return False


@given(_values, st.booleans())
@example("\x00", True)
@example("\ud800", False)
@example("\ud800", True)
def test_texts_are_refused_however_they_are_written(value: object, escaped: bool) -> None:  # noqa: FBT001 - likewise
    """Escaped or as they are."""
    body = json.dumps(value, ensure_ascii=escaped).encode("utf-8", "surrogatepass")
    if _refused(json.loads(body)):
        with pytest.raises(BadRequest):
            parse_json(body, "application/json")
    else:
        assert parse_json(body, "application/json") == value


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le"])
@pytest.mark.parametrize("text", ["a\\u0000b", "a\x00b", "a\\ud800b", "a\ud800b"])
def test_no_encoding_gets_past_the_checks(text: str, encoding: str) -> None:
    """JSON may come in other encodings than UTF-8; what it says counts."""
    with pytest.raises(BadRequest):
        parse_json(f'{{"units":["{text}"]}}'.encode(encoding, "surrogatepass"), "application/json")


@given(st.lists(_numbers, min_size=1, max_size=4))
def test_infinite_numbers_are_refused_however_they_are_written(numbers: list[str]) -> None:
    """Among others, with the place where they stand."""
    body = ('{"a":[' + ",".join(numbers) + "]}").encode()
    infinite = {f"/a/{place}" for place, number in enumerate(numbers) if json.loads(number) in (float("inf"), float("-inf"))}
    if infinite:
        with pytest.raises(BadRequest) as refused:
            parse_json(body, "application/json")
        assert refused.value.fields[0]["pointer"] in infinite
    else:
        parse_json(body, "application/json")


@pytest.mark.parametrize("depth", [4, 127, 129, 5_000])
@pytest.mark.parametrize("shape", [(b"[", b'"[[[["', b"]"), (b'["]",', b"0", b',"["]')])
def test_nesting(depth: int, shape: tuple[bytes, bytes, bytes]) -> None:
    """Brackets in texts are no nesting."""
    before, inside, after = shape
    body = before * depth + inside + after * depth
    if depth > 128:
        with pytest.raises(BadRequest):
            parse_json(body, "application/json")
    else:
        parse_json(body, "application/json")
