"""Filters of traffic and orders of experiments are carried by indexes, as the plans at a million assignments show."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import pytest
from sqlalchemy import event, text

from service.domain import UNAUDITED, Experiment, ExperimentStatus, PolicySpec, Progress, RewardSpec
from service.domain.limits import MOST_VISITED_ASSIGNMENTS, MOST_VISITED_EXPERIMENTS, MOST_VISITED_OBSERVATIONS
from service.storage.database import Connection, Database
from service.storage.queries import (
    announced_events,
    listed_versions,
    stored_assignments,
    stored_experiments,
    stored_history,
    stored_observations,
)
from service.storage.queries.experiment_list import ExperimentFilter, ExperimentOrder
from service.storage.queries.stored_assignments import AssignmentPage, StoredFilter
from service.storage.row_streams import export_queries
from service.storage.tables import AUDITED_ONLY, arms
from testing.databases import NewDatabase

pytestmark = pytest.mark.bulk
_ROWS = 1_000_000
_ARMS = 1_000
# All draws, and the two ways of asking for some: below where the last page ended, and within a time.
_WINDOWS = (range(1, _ROWS + 1), range(1, _ROWS // 2), range(_ROWS // 4, _ROWS // 2))
_FEW_PAGES = 3
_NAMED = ("key", "name", "value", "status")
# Of a million draws the first 700,000 were rewarded, then 290,000 expired, a few of both were voided, and the rest is pending.
_STATUS = """CASE WHEN n % 140000 = 0 THEN 'voided' WHEN n <= 700000 THEN 'rewarded' WHEN n <= 990000 THEN 'expired'
ELSE 'pending' END"""
_NUMBERS = {
    "sqlite": f"WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {_ROWS})",
    "postgresql": f"WITH numbers(n) AS (SELECT generate_series(1, {_ROWS}))",
}
# The indexes of the tables that are filled, but for those of their keys.
_INDEXES = {
    "sqlite": "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND tbl_name IN ('assignments', 'events') AND sql <> ''",
    "postgresql": """SELECT indexname, indexdef FROM pg_indexes WHERE tablename IN ('assignments', 'events')
    AND indexname NOT IN (SELECT conname FROM pg_constraint)""",
}
_FILL = (
    f"""INSERT INTO assignments (experiment_id, draw, token, sequence, arm, unit, reason, epoch, created_at, status, closed)
    {{numbers}} SELECT 1, n, n, n + 1, n % {_ARMS}, CASE WHEN n % 10 = 0 THEN 'unit-' || (n % 5000) END, 'track', 1, n,
    {_STATUS}, false FROM numbers""",
    """INSERT INTO events (experiment_id, sequence, kind, at, arm, draw, status_after)
    {numbers} SELECT 1, n + 1, 'draw', n, 0, n, 'pending' FROM numbers""",
    f"""INSERT INTO events (experiment_id, sequence, kind, at, arm, draw, status_before, status_after)
    {{numbers}} SELECT 1, {_ROWS} + n + 1, CASE {_STATUS}
    WHEN 'voided' THEN 'void' WHEN 'expired' THEN 'expiry' ELSE 'reward' END, n, 0, n, 'pending', {_STATUS}
    FROM numbers WHERE n <= 990000""",
    # Of a handful of audited events a database may read all and sort them.
    f"""INSERT INTO events (experiment_id, sequence, kind, at)
    {{numbers}} SELECT 1, {_ROWS} + 990001 + n, CASE WHEN n % 10 = 0 THEN 'lifecycle' ELSE 'patch' END, n
    FROM numbers WHERE n < 9000""",
    f"""INSERT INTO events (experiment_id, sequence, kind, at, arm, status_after, reward_after)
    {{numbers}} SELECT 2, n, 'observation', n, CASE WHEN n = {_ROWS // 2} THEN 5000 ELSE n % {_ARMS} END, 'rewarded', 1
    FROM numbers""",
)


def _below(before: int | None) -> range:
    return range(1, _ROWS + 1 if before is None else before)


class Listed:
    """A database with a million assignments in one experiment, and the plans of the statements that are run on it."""

    def __init__(self, url: str) -> None:
        self.runner = asyncio.Runner()
        self.database = Database(url, pool_size=1)
        self.run(self._fill())

    def run(self, doing: Any) -> Any:  # noqa: ANN401 - any coroutine
        """Run to the end."""
        return self.runner.run(doing)

    async def _fill(self) -> None:
        numbers = _NUMBERS["sqlite" if self.database.is_sqlite else "postgresql"]
        indexes = _INDEXES["sqlite" if self.database.is_sqlite else "postgresql"]
        async with self.database.writing() as connection:
            # As the migrations made them, but after the rows: row by row they take twice as long.
            made = (await connection.execute(text(indexes))).all()
            for name, _ in made:
                await connection.execute(text(f"DROP INDEX {name}"))
            for statement in _FILL:
                await connection.execute(text(statement.format(numbers=numbers)))
            for _, definition in made:
                await connection.exec_driver_sql(definition)
        async with self.database.engine.connect() as connection:
            await connection.execution_options(isolation_level="AUTOCOMMIT")
            await connection.execute(text("ANALYZE" if self.database.is_sqlite else "VACUUM ANALYZE"))

    async def page(self, wanted: StoredFilter, before: int | None = None, limit: int = 21) -> AssignmentPage:
        """A page of assignments."""
        async with self.database.reading() as connection:
            return await stored_assignments.page_of_assignments(connection, 1, wanted, draws=_below(before), limit=limit)

    async def plans(self, read: Any) -> list[str]:  # noqa: ANN401 - a function of a connection
        """The plan of each statement that the read runs."""
        statements: list[tuple[str, Any]] = []

        def note(_connection: object, _cursor: object, statement: str, parameters: Any, *_: object) -> None:  # noqa: ANN401
            if statement.lstrip().startswith("SELECT"):
                statements.append((statement, parameters))

        event.listen(self.database.engine.sync_engine, "before_cursor_execute", note)
        try:
            async with self.database.reading() as connection:
                await read(connection)
        finally:
            event.remove(self.database.engine.sync_engine, "before_cursor_execute", note)
        explain = "EXPLAIN QUERY PLAN " if self.database.is_sqlite else "EXPLAIN "
        async with self.database.reading() as connection:
            plans = [await connection.exec_driver_sql(explain + statement, values) for statement, values in statements]
            return ["\n".join(str(row[-1]) for row in plan) for plan in plans]


@pytest.fixture(scope="module")
def listed(new_database: NewDatabase) -> Iterator[Listed]:
    """The filled database."""
    filled = Listed(new_database())
    yield filled
    filled.run(filled.database.close())
    filled.runner.close()


def _scans(plan: str) -> list[str]:
    """What of a plan reads a table from end to end, or sorts what it read."""
    sqlite = r"^SCAN|USE TEMP B-TREE"
    return re.findall(rf"{sqlite}|Seq Scan on \w+|Sort Key.*", plan, re.MULTILINE)


@pytest.mark.parametrize(
    ("status", "arm", "unit", "draws"),
    list(product((None, "pending", "rewarded", "expired", "voided"), (None, 7), (None, "unit-70"), _WINDOWS)),
)
def test_filters_of_assignments_are_carried_by_indexes(
    listed: Listed, status: str | None, arm: int | None, unit: str | None, draws: range
) -> None:
    """No page of any combination reads the table through or sorts it."""

    async def read(connection: Connection) -> object:
        return await stored_assignments.page_of_assignments(connection, 1, StoredFilter(status, arm, unit), draws=draws, limit=21)

    plans = listed.run(listed.plans(read))
    assert plans
    assert [_scans(plan) for plan in plans] == [[]] * len(plans), plans


def test_assignments_of_an_arm_are_found_page_by_page(listed: Listed) -> None:
    """Newest first, each once, and none left out, although a page of few arms looks at a bounded number of draws."""
    below: int | None = _ROWS + 1
    found, pages = list[int](), 0
    while below and pages < _FEW_PAGES:
        page: AssignmentPage = listed.run(listed.page(StoredFilter(None, 7, None), below, limit=1_000))
        found += [one.draw for one in page.found]
        below, pages = page.go_on_below, pages + 1
    visited = _FEW_PAGES * MOST_VISITED_ASSIGNMENTS
    assert found == [draw for draw in range(_ROWS, _ROWS - visited, -1) if draw % _ARMS == 7]
    assert pages == _FEW_PAGES


class Explained:
    """A snapshot that tells how each statement is read, and finds nothing."""

    def __init__(self, listed: Listed) -> None:
        self._listed = listed
        self.plans: list[str] = []

    async def fetch(self, statement: str, *values: object) -> Sequence[Any]:
        """No row."""
        explain = "EXPLAIN QUERY PLAN " if self._listed.database.is_sqlite else "EXPLAIN "
        async with self._listed.database.row_source.connection() as connection, connection.snapshot() as rows:
            self.plans.append("\n".join(row[-1] for row in await rows.fetch(explain + statement, *values)))
        return []


@pytest.mark.parametrize("arm", [None, 7])
@pytest.mark.parametrize("table", [export_queries.assignments, export_queries.observations, export_queries.events])
def test_exports_are_carried_by_indexes(listed: Listed, table: Any, arm: int | None) -> None:  # noqa: ANN401 - one of these
    """Rows come in their order as they are read: no export sorts, gathers or reads another experiment's."""
    explained = Explained(listed)
    listed.run(table(explained, 1, range(5, 2 * _ROWS), arm, 5_000))
    (found,) = explained.plans
    assert _scans(found) == [], found
    assert "Hash" not in found
    assert "experiment_id" in found


def test_what_came_later_is_carried_by_indexes(listed: Listed) -> None:
    """What undoes it passes the events behind the version once; what dates a reward passes the draws' steps and corrections."""
    explained = Explained(listed)
    listed.run(export_queries.steps(explained, 1, range(2 * _ROWS - 50, 2 * _ROWS), range(1, _ROWS)))
    listed.run(export_queries.reward_dates(explained, 1, {7, 8}, range(7, 17)))
    listed.run(export_queries.observations_before(explained, 1, 50, {"imported"}))
    steps, corrections, first_rewards, observations = explained.plans
    assert [_scans(plan) for plan in explained.plans] == [[]] * 4, explained.plans
    assert not [plan for plan in (steps, first_rewards) if "ix_events" in plan], explained.plans  # the primary key
    assert ["ix_events_audited" in plan for plan in (corrections, observations)] == [True, True], explained.plans


def test_rewards_of_then_are_dated_however_long_after_their_draws_they_came(listed: Listed) -> None:
    """Here a million events after, of which each statement looks at a part. Without a reward up to the last there is no date."""

    async def read(end: int) -> dict[int, int]:
        async with listed.database.row_source.connection() as connection, connection.snapshot() as rows:
            return await export_queries.reward_dates(rows, 1, {5, 300_000, 990_001}, range(6, end))

    assert listed.run(read(2 * _ROWS)) == {5: 5, 300_000: 300_000}
    assert listed.run(read(_ROWS + 300_001)) == {5: 5}


def test_the_audit_log_is_carried_by_its_index(listed: Listed) -> None:
    """Both ways of reading it, in the words of the index, which leave out exactly the kinds that are not audited."""

    async def read(connection: Connection) -> None:
        await stored_history.page_of_events(connection, 1, range(1, 2 * _ROWS), 21)
        await stored_history.page_of_events(connection, 1, range(_ROWS // 2, _ROWS), 21)
        await stored_history.length_of_details(connection, 1, range(1, 2 * _ROWS), 21)
        await stored_history.arm_changes_after(connection, 1, 7, 10)
        await stored_history.visited_events(connection, 1, range(1, 2 * _ROWS))
        await stored_history.page_of_events(connection, 1, range(1, 2 * _ROWS), 21, ("lifecycle", "patch"))

    plans = listed.run(listed.plans(read))
    assert ["ix_events_audited" in plan for plan in plans] == [True] * 6, plans
    assert [[scan for scan in _scans(plan) if "anon" not in plan] for plan in plans[:3] + plans[4:]] == [[]] * 5, plans
    assert re.findall(r"'(\w+)'", AUDITED_ONLY) == list(UNAUDITED)


def test_what_webhooks_are_told_is_carried_by_its_indexes(listed: Listed) -> None:
    """Where there is news, what comes behind a cursor, and what was noted last: none of it passes the traffic."""
    experiment = Experiment(1, "e", "e", "", PolicySpec(), RewardSpec(), None, False, 0.95, None, "running", None, 0)
    progress = Progress(experiment, version=2 * _ROWS, as_of=0, draws=0, epoch=1)

    async def read(connection: Connection) -> None:
        await announced_events.news_since(connection, 0)
        await announced_events.announced_after(connection, 1, 10, 0)
        await announced_events.last_notices(connection, progress)

    plans = listed.run(listed.plans(read))
    assert len(plans) == 4
    assert ["ix_events_announced" in plan for plan in plans] == [True] * 4, plans
    assert [re.findall(r"SCAN events|Seq Scan on events", plan) for plan in plans] == [[]] * 4, plans


@pytest.mark.parametrize("arm", [None, 7, 999, 5_000])
@pytest.mark.parametrize("sequences", [range(1, 3 * _ROWS), range(_ROWS // 4, _ROWS // 2)], ids=["all", "a window"])
def test_observations_are_carried_by_their_index(listed: Listed, arm: int | None, sequences: range) -> None:
    """Of any arm or of one, all or within a time: no page reads the history through, or sorts it."""

    async def read(connection: Connection) -> object:
        return await stored_observations.page_of_arrivals(connection, 2, sequences, arm=arm, limit=21)

    plans = listed.run(listed.plans(read))
    assert ["ix_events_observations" in plan for plan in plans] == [True] * (1 if arm is None else 2), plans
    assert [_scans(plan) for plan in plans] == [[]] * len(plans), plans


def test_observations_of_a_rare_arm_are_found_page_by_page(listed: Listed) -> None:
    """The one that there is, among a million, after pages that look at a bounded number each; then the list ends."""
    below, found, pages = _ROWS + 1, list[int](), 0

    async def read(before: int) -> stored_observations.ArrivalPage:
        async with listed.database.reading() as connection:
            return await stored_observations.page_of_arrivals(connection, 2, range(1, before), arm=5_000, limit=21)

    while below:
        page: stored_observations.ArrivalPage = listed.run(read(below))
        found += [one.sequence for one in page.events]
        below, pages = page.go_on_below or 0, pages + 1
    assert (found, pages) == ([_ROWS // 2], _ROWS // MOST_VISITED_OBSERVATIONS)


def test_lists_of_experiments_are_carried_by_indexes(listed: Listed) -> None:
    """By any filter, up and down, and in the dashboard by status; what is looked for is looked for in order, not sorted."""
    orders: tuple[ExperimentOrder, ...] = ("-created_at", "created_at", "key", "-key")
    statuses: tuple[ExperimentStatus | None, ...] = (None, "draft")
    filters = [
        ExperimentFilter(text, status, tag, owner, order, since)
        for text, status, tag, owner, since in product((None, "y-7"), statuses, (None, "t"), (None, "ann"), (None, 5))
        for order in orders
    ]

    async def fill() -> None:
        columns = """name, description, policy, reward, sticky, confidence, created_at, version, as_of, draws, epoch, batch,
        plan_cursor, plan_averaged, may_expire, observed, snapshot_at, snapshot_stride, uncounted, tags"""
        policy = """'{"kind": "uniform", "seed": 1}', '{"kind": "binary", "goal": "maximize"}'"""
        values = f"'', '', {policy}, false, 0.95, n, 1, 0, 0, 1, 0, 0, 0, false, false, 0, 1, '', '[\"t\"]'"
        numbers = _NUMBERS["sqlite" if listed.database.is_sqlite else "postgresql"]
        insert = f"""INSERT INTO experiments (key, status, owner, {columns}) {numbers}
        SELECT 'key-' || n, CASE WHEN n % 1000 = 0 THEN 'draft' ELSE 'archived' END, CASE WHEN n % 500 = 0 THEN 'ann' END,
        {values} FROM numbers WHERE n <= 300000"""
        sums = [column.name for column in arms.columns if column.name.endswith(("_sum", "_squares"))]
        counts = [column.name for column in arms.columns if column.name not in {"experiment_id", "position", *_NAMED, *sums}]
        one_each = f"""INSERT INTO arms (experiment_id, position, {", ".join([*_NAMED, *counts, *sums])})
        SELECT id, 0, 'a', 'a', '1', 'active', {", ".join(["0"] * len(counts + sums))} FROM experiments"""
        async with listed.database.writing() as connection:
            await connection.exec_driver_sql(insert)
            await connection.exec_driver_sql(one_each)
        async with listed.database.writing() as connection:
            await connection.execute(text("ANALYZE"))

    async def read(connection: Connection) -> None:
        for wanted, before in product(filters, (None, 10_000)):
            await stored_experiments.page_of_experiments(connection, wanted, before=before, limit=21)
        await listed_versions.page_of_versions(connection, ExperimentFilter(status="draft"), "-created_at", skip=0, limit=20)

    listed.run(fill())
    plans = listed.run(listed.plans(read))
    assert len(plans) > 2 * len(filters)
    assert [plan for plan in plans if _reads_all_experiments(plan)] == []


def _reads_all_experiments(plan: str) -> bool:
    """Sorts more of the table than a page may look at, which reads it through. PostgreSQL may well sort a few."""
    scanned = any("Seq Scan on experiments" in scan or scan.startswith("USE TEMP") for scan in _scans(plan))
    return scanned or any(int(rows) > MOST_VISITED_EXPERIMENTS for rows in re.findall(r"Sort  \(cost=\S+ rows=(\d+)", plan))


@pytest.mark.parametrize(
    ("wanted", "draws"),
    [
        (StoredFilter(None, None, None), range(_ROWS, 0, -1)),
        (StoredFilter("pending", None, None), range(_ROWS, 990_000, -1)),
        (StoredFilter("expired", None, None), [draw for draw in range(990_000, 700_000, -1) if draw % 140_000]),
        (StoredFilter("voided", None, None), range(980_000, 0, -140_000)),
        (StoredFilter(None, None, "unit-70"), range(_ROWS - 4_930, 0, -5_000)),
        (StoredFilter("rewarded", None, "unit-70"), range(695_070, 0, -5_000)),
    ],
)
def test_a_page_has_the_newest(listed: Listed, wanted: StoredFilter, draws: list[int]) -> None:
    """The first page, and the one after it."""
    first: AssignmentPage = listed.run(listed.page(wanted))
    assert [one.draw for one in first.found] == list(draws[:21])
    below = draws[9] if len(draws) > 21 else 500_000
    then: AssignmentPage = listed.run(listed.page(wanted, below))
    assert [one.draw for one in then.found] == [draw for draw in draws[:2_000] if draw < below][:21]


def test_rewarded_ones_are_looked_for_from_the_newest_draw(listed: Listed) -> None:
    """Page by page where the newest have no reward, each of a bounded number of draws; then they are the newest that have one."""
    rewarded = StoredFilter("rewarded", None, None)
    page: AssignmentPage = listed.run(listed.page(rewarded))
    empty = 0
    while not page.found and page.go_on_below is not None:
        page, empty = listed.run(listed.page(rewarded, page.go_on_below)), empty + 1
    assert empty == (_ROWS - 700_000) // MOST_VISITED_ASSIGNMENTS
    assert [one.draw for one in page.found] == list(range(699_999, 699_978, -1))
    last: AssignmentPage = listed.run(listed.page(rewarded, 10))
    assert ([one.draw for one in last.found], last.go_on_below) == (list(range(9, 0, -1)), None)


@pytest.mark.parametrize("status", [None, "expired", "voided"])
def test_a_page_keeps_to_its_window(listed: Listed, status: str | None) -> None:
    """Below its end and down to its beginning, where the list ends."""

    async def read() -> AssignmentPage:
        window = range(839_995, 840_005)
        async with listed.database.reading() as connection:
            return await stored_assignments.page_of_assignments(
                connection, 1, StoredFilter(status, None, None), draws=window, limit=21
            )

    page: AssignmentPage = listed.run(read())
    shown = {None: range(840_004, 839_994, -1), "voided": [840_000]}
    others = [draw for draw in range(840_004, 839_994, -1) if draw != 840_000]
    assert [one.draw for one in page.found] == list(shown.get(status, others))
    assert page.go_on_below is None


def test_a_search_that_finds_little_goes_on_page_by_page(listed: Listed) -> None:
    """Pending ones below the newest: none, after pages of a bounded number of draws each, and then the end."""
    below: int | None = 990_001
    starts = []
    while below is not None:
        page: AssignmentPage = listed.run(listed.page(StoredFilter("pending", None, None), below))
        assert page.found == []
        starts.append(below)
        below = page.go_on_below
    assert starts == list(range(990_001, 0, -20_000))
