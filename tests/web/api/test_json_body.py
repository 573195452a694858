"""A body that looks plain from its bytes holds nothing that would be refused, and reading one costs what its size allows."""

from __future__ import annotations

import gc
import hashlib
import json
import threading
import time
import tracemalloc
from collections.abc import Callable

import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from service.web.api.json_body import fingerprint, parse_json, refuse_crowd, refuse_unstorable
from service.web.api.request_schemas import ExperimentIn
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
def test_texts_are_refused_however_they_are_written(value: object, escaped: bool) -> None:  # noqa: FBT001 - given by name
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


# Reading takes this many times what the parser alone takes (a null takes it 8 ns, and a fingerprint twice as many times), and
# checking may add this many times the body's size to its memory.
_TIMES_THE_PARSER = 25
_TIMES_THE_SIZE = 6
# One of the parts that a large body is made of: short to write, long to keep, or strange to check.
_parts = st.sampled_from(
    ["0", "0.5", "[0]", "{}", "[]", '""', '"aa"', '"\\\\"', '"é"', '"[{"', "[[[0]]]", '{"a":{"b":[""]}}', "1e300", "null"]
)
_names = st.sampled_from(["n", "n" * 30_000, "~/" * 10_000, "é" * 10_000, "[{" * 5_000])


def _cost(call: Callable[[], object]) -> tuple[float, int]:
    """Seconds of the processor, and the most bytes at once."""
    gc.disable()
    try:
        times = []
        for _ in range(2):
            began = time.thread_time()
            call()
            times.append(time.thread_time() - began)
        tracemalloc.start()
        call()
        return min(times), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        gc.enable()


@pytest.mark.serial
@given(st.lists(_parts, min_size=1, max_size=4), _names, st.integers(0, 60), st.booleans())
@example(["0"], "n" * 150_000, 0, True)
@settings(max_examples=12, deadline=None, phases=[Phase.explicit, Phase.generate])
def test_reading_a_body_costs_what_its_size_allows(parts: list[str], name: str, depth: int, escaped: bool) -> None:  # noqa: FBT001 - given by name
    """Whatever its shape: many items under one long name built a long text for each of them."""
    first = '"\\\\",' if escaped else ""
    inside = ",".join(parts * (100_000 // len(",".join(parts))))
    body = ("[" * depth + f'{{"{name}":[{first}{inside}]}}' + "]" * depth).encode()
    floor_seconds, floor_bytes = _cost(lambda: json.loads(body))
    parsed = json.loads(body)
    for times, (seconds, most_bytes) in (
        (_TIMES_THE_PARSER, _cost(lambda: parse_json(body, "application/json"))),
        (2 * _TIMES_THE_PARSER, _cost(lambda: fingerprint(parsed))),
    ):
        assert seconds <= times * floor_seconds
        assert most_bytes <= floor_bytes + _TIMES_THE_SIZE * len(body)


_LARGE_SHAPES = {
    "numbers": b"[" + b"0," * 2_000_000 + b"0]",
    "large numbers": b"[" + b"1e300," * 700_000 + b"0]",
    "numbers below many levels": b"[" * 120 + b"0," * 500_000 + b"0" + b"]" * 120,
    "names": json.dumps([dict.fromkeys(map(str, range(50_000)), "")] * 6).encode(),
    "lists": b"[" + b"[[]]," * 124_000 + b"0]",
}


@pytest.mark.serial
@pytest.mark.parametrize("body", _LARGE_SHAPES.values(), ids=_LARGE_SHAPES)
def test_others_get_their_turn_while_a_fingerprint_is_made(body: bytes) -> None:
    """The interpreter is never kept as long as one call for all of it would keep it."""
    refuse_crowd(body)
    parsed = json.loads(body)
    assert any(_longest_gap_beside(lambda: fingerprint(parsed)) < 0.1 for _ in range(3)), "each try may meet a busy machine"


def _longest_gap_beside(call: Callable[[], object]) -> float:
    """For how long another thread was kept, in seconds."""
    gaps, done = [0.0], threading.Event()

    def look() -> None:
        before = time.perf_counter()
        while not done.is_set():
            time.sleep(0.001)
            now = time.perf_counter()
            gaps.append(now - before)
            before = now

    looking = threading.Thread(target=look)
    looking.start()
    call()
    done.set()
    looking.join()
    return max(gaps)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize(
    ("body", "refused"),
    [
        ('["\\\\","\\"",' + "[]," * 250_000 + "0]", True),
        ("[" + '{"a":{}},' * 130_000 + "0]", True),
        ('["' + '[{\\"' * 300_000 + '"]', False),
        ("[" + '"[",' * 300_000 + "[]]", False),
    ],
    ids=["lists", "objects", "in a text", "in texts"],
)
def test_a_crowd_of_lists_is_refused(body: str, encoding: str, refused: bool) -> None:  # noqa: FBT001 - parametrized
    """The parser would keep the interpreter for all of them; brackets in texts are none."""
    if refused:
        with pytest.raises(BadRequest, match="250,000"):
            refuse_crowd(body.encode(encoding))
    else:
        refuse_crowd(body.encode(encoding))


def test_a_crowd_of_names_is_refused() -> None:
    """They would be sorted at once."""
    with pytest.raises(BadRequest, match="50,000"):
        parse_json(json.dumps({"a": dict.fromkeys(map(str, range(50_001)), 0)}).encode(), "application/json")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32-le"])
@pytest.mark.parametrize("value", ['""', "[]", '["a",[0]]', "0"])
def test_a_crowd_of_names_is_refused_before_it_is_one_object(value: str, encoding: str) -> None:
    """The parser makes all of them in one call; as many names of several objects, and colons in texts, are no crowd."""
    with pytest.raises(BadRequest, match="50,000"):
        refuse_crowd(("[{" + f'"\\\\":{value},' * 50_001 + "}]").encode(encoding))
    refuse_crowd(("[" + ("{" + f'"n":{value},' * 40_000 + '"::":"\\\\"::"},') * 2 + '"' + ":" * 60_000 + '"]').encode(encoding))


@given(st.integers(0, 99_999), st.sampled_from(["\\u0000", "\\ud800", None]))
@settings(max_examples=10, deadline=None)
def test_the_offender_is_named_among_many(place: int, text: str | None) -> None:
    """By a pointer of its own; nobody else's is put into words."""
    items = ["0"] * 100_000
    items[place] = "1e400" if text is None else f'"{text}"'
    body = f'{{"a~/b":[0,{{"c":[{",".join(items)}]}}]}}'.encode()
    with pytest.raises(BadRequest) as refused:
        parse_json(body, "application/json")
    assert refused.value.fields[0]["pointer"] == f"/a~0~1b/1/c/{place}"


def test_a_crowd_of_unknown_fields_is_one_mistake() -> None:
    """Its answer is no larger than the request, wherever the crowd stands."""
    crowd = {f"typo-{number}": 0 for number in range(100_000)}
    known = {"key": "a", "arms": [{"key": "a"}, {"key": "b"}]}
    for body in (known | crowd, known | {"arms": [{"key": "a"} | crowd, {"key": "b"}]}, known | {"policy": crowd}):
        with pytest.raises(ValidationError) as refused:
            ExperimentIn.model_validate(body)
        assert refused.value.error_count() == 1
    many_bad_arms = known | {"arms": [{"key": "a", "typo": 0}] * 10_000}
    with pytest.raises(ValidationError) as refused:
        ExperimentIn.model_validate(many_bad_arms)
    assert [error["loc"] for error in refused.value.errors()] == [("arms", 0, "typo")]


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        (b'{"a":1}', b'{ "a": 1.0 }', True),
        (b'{"a":100}', b'{"a":1e2}', True),
        (b'{"a":0}', b'{"a":-0.0}', True),
        (b'{"a":1,"b":[2]}', b'{"b":[2.0],"a":1}', True),
        (b'{"a":10000000000000000000000}', b'{"a":1e22}', True),
        (b'{"a":"\\u00e9"}', '{"a":"é"}'.encode(), True),
        (b'{"a":1}', b'{"a":1.5}', False),
        (b'{"a":1}', b'{"a":"1"}', False),
        (b'{"a":1}', b'{"a":true}', False),
        (b'{"a":[1,2]}', b'{"a":[2,1]}', False),
    ],
)
def test_equal_json_has_one_fingerprint(one: bytes, other: bytes, equal: bool) -> None:  # noqa: FBT001 - parametrized
    """However its numbers, names and spaces are written."""
    assert (fingerprint(json.loads(one)) == fingerprint(json.loads(other))) is equal


def test_numbers_of_any_size_are_told_apart() -> None:
    """By their value, in few characters."""
    different = ["1e22", "1e23", "1" + "0" * 23, "1e300", "-1e300", "1" + "0" * 400, "9007199254740993", "9007199254740992"]
    assert len({fingerprint(json.loads(number)) for number in different}) == len(different)


_ordinary = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(10**22) + 1, 10**22 - 1), st.floats(-1e21, 1e21), _texts),
    lambda inner: st.one_of(st.lists(inner, max_size=40), st.dictionaries(_texts, inner, max_size=40)),
    max_leaves=60,
)


@given(_ordinary)
def test_a_fingerprint_is_what_releases_before_have_stored(value: object) -> None:
    """A key that was used before an upgrade knows its body after it."""

    def plain(digits: str) -> float:
        return int(float(digits)) if float(digits).is_integer() else float(digits)

    written = json.dumps(json.loads(json.dumps(value), parse_float=plain), sort_keys=True, separators=(",", ":"))
    assert fingerprint(value) == hashlib.sha256(written.encode()).hexdigest()
