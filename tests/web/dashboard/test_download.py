"""The data of an experiment, from its page into a file."""

from __future__ import annotations

import io
import json
import os
import shutil
from pathlib import Path

import httpx
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect
from pyarrow import parquet

from testing.server import Server
from tests.web.dashboard.traffic import create, visit


@pytest.fixture
def visited(http: httpx.Client, key: str) -> str:
    """An experiment with some draws."""
    create(http, key)
    visit(http, key, {"control": 0.5, "variant": 0.5})
    return key


def test_a_file_is_downloaded(page: Page, http: httpx.Client, visited: str, tmp_path: Path) -> None:
    """Table and format are chosen by keyboard; the file is the export, under its name; then the button has the focus again."""
    draws = http.get(f"/v1/experiments/{visited}/recommendation").json()["draws"]
    page.goto(f"/experiments/{visited}")
    for table, form, name in (("events", "jsonl", "JSON lines"), ("assignments", "parquet", "Parquet")):
        page.get_by_role("button", name="Download").click()
        dialog = page.get_by_role("dialog", name="Download the data of")
        expect(dialog).to_contain_text("personal data")
        assert Axe().run(page).violations_count == 0
        expect(dialog.get_by_label("Table")).to_be_focused()
        dialog.get_by_label("Table").select_option(table)
        dialog.get_by_label("Format").select_option(form)
        assert name in dialog.get_by_label("Format").inner_text()
        with page.expect_download() as started:
            dialog.get_by_role("button", name="Download").press("Enter")
        assert started.value.suggested_filename == f"{visited}-{table}.{form}"
        started.value.save_as(tmp_path / form)
        expect(dialog).to_have_count(0)
        expect(page.get_by_role("button", name="Download")).to_be_focused()
    events = [json.loads(line) for line in (tmp_path / "jsonl").read_text().splitlines()]
    assert sum(event["kind"] == "draw" for event in events) == draws
    assert parquet.read_table(io.BytesIO((tmp_path / "parquet").read_bytes())).num_rows == draws


def test_what_cannot_be_had_is_said(browser: Browser, sqlite_template: Path, tmp_path: Path) -> None:
    """Where the service lacks the extra, in words, and the question stays; the other formats are there."""
    shutil.copy(sqlite_template, tmp_path / "bestarm.db")
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['pyarrow'] = None\n")
    path = os.pathsep.join([str(tmp_path), str(Path.cwd())])
    with Server(f"sqlite:///{tmp_path / 'bestarm.db'}", PYTHONPATH=path) as server, server.client() as http:
        create(http, "e")
        with browser.new_context(base_url=server.url) as screen:
            page = screen.new_page()
            page.goto("/experiments/e")
            page.get_by_role("button", name="Download").click()
            dialog = page.get_by_role("dialog", name="Download the data of")
            dialog.get_by_label("Format").select_option("parquet")
            dialog.get_by_role("button", name="Download").click()
            expect(dialog.get_by_role("alert")).to_contain_text("lacks the extra “parquet”")
            dialog.get_by_label("Format").select_option("csv")
            with page.expect_download() as started:
                dialog.get_by_role("button", name="Download").click()
            assert started.value.suggested_filename == "e-assignments.csv"
