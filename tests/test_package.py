"""The package as others install it: a wheel and the locked dependencies in a fresh environment, away from this repository.

These are the commands of the Dockerfile and of the compose file, in their order.
"""

from __future__ import annotations

from pathlib import Path
from zipfile import ZipFile

import pytest

from testing.installation import KEEP_BYTECODE, build, install, run
from testing.postgres import Postgres
from testing.server import Server

pytestmark = pytest.mark.process
# Every character that means something in a URL, in a shell or in SQL.
_PASSWORD = "p@ss:w/rd?#%20&=+ $'\"\\"  # noqa: S105 - of a database that lives for a minute


@pytest.fixture(scope="module")
def away(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that knows nothing of the repository."""
    return tmp_path_factory.mktemp("away")


@pytest.fixture(scope="module")
def bestarm(away: Path) -> Path:
    """The installed command."""
    return install(build(away / "dist", only_wheel=True), away / "venv")


@pytest.fixture(scope="module")
def guarded(postgres: Postgres) -> str:
    """An empty database whose owner needs a password; the URL does not have it."""
    quoted = _PASSWORD.replace("'", "''")
    postgres.sql(f"CREATE ROLE guarded LOGIN PASSWORD '{quoted}'")
    postgres.sql("CREATE DATABASE guarded OWNER guarded")
    rules = postgres.data / "pg_hba.conf"
    rules.write_text("local all guarded scram-sha-256\n" + rules.read_text())
    postgres.sql("SELECT pg_reload_conf()")
    return f"postgresql://guarded@/guarded?host={postgres.folder}"


def _walk(serving: Server) -> None:
    """Create, ask and tell."""
    with serving.client() as client:
        arms = [{"key": "grey"}, {"key": "green"}]
        assert client.post("/v1/experiments", json={"key": "packed", "arms": arms}).status_code == 201
        asked = client.post("/v1/experiments/packed/assignments", json={}).json()
        told = client.post(f"/v1/experiments/packed/assignments/{asked['id']}/reward", json={"reward": 1})
        assert told.json()["status"] == "rewarded"
        for page in ("/", "/docs", "/v1/experiments/packed/charts/means.svg"):
            assert client.get(page).status_code == 200, page


@pytest.mark.usefixtures("bestarm")
def test_the_wheel_holds_the_service_alone(away: Path) -> None:
    """With its migrations and the simulator's instances; the paper's studies stay in the repository."""
    (wheel,) = (away / "dist").glob("*.whl")
    names = ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == {"service"}
    assert {"service/migrations/env.py", "service/simulation/data/instances.json"} <= set(names)


def test_it_runs_on_an_embedded_database_by_itself(bestarm: Path, away: Path) -> None:
    """The migrations are in the wheel: `serve` makes its own database."""
    with Server("sqlite:///own.db", program=[bestarm], cwd=away, PYTHONDONTWRITEBYTECODE=KEEP_BYTECODE) as serving:
        _walk(serving)
        assert serving.stop() == 0
    assert (away / "own.db").exists()


def test_it_runs_on_a_postgresql_as_compose_runs_it(bestarm: Path, away: Path, guarded: str) -> None:
    """No start before the migration; `migrate`; then several workers; the password comes from a file, or from PGPASSWORD."""
    (away / "password").write_text(f"{_PASSWORD}\n")
    secret = str(away / "password")
    settings = {"BESTARM_DATABASE_URL": guarded, "BESTARM_DATABASE_PASSWORD_FILE": secret}
    wrong = run(bestarm, "migrate", cwd=away, BESTARM_DATABASE_URL=guarded, PGPASSWORD="guess")
    assert wrong.returncode == 1
    assert "Cannot migrate" in wrong.stderr
    assert "password authentication failed" in " ".join(wrong.stderr.split())
    assert "Traceback" not in wrong.stderr
    early = run(bestarm, "serve", "--port", "0", cwd=away, **settings)
    assert early.returncode == 1
    assert "bestarm migrate" in " ".join(early.stderr.split())
    assert run(bestarm, "migrate", cwd=away, **settings).returncode == 0
    with Server(
        guarded,
        workers=2,
        program=[bestarm],
        cwd=away,
        BESTARM_DATABASE_PASSWORD_FILE=secret,
        PYTHONDONTWRITEBYTECODE=KEEP_BYTECODE,
    ) as serving:
        _walk(serving)
    replayed = run(bestarm, "replay", "packed", cwd=away, BESTARM_DATABASE_URL=guarded, PGPASSWORD=_PASSWORD)
    assert (replayed.returncode, replayed.stdout) == (0, "packed: 3 events replayed, no difference.\n")
