"""In a real kernel of Jupyter: progress is one line that is updated, and data show themselves as tables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from queue import Empty
from typing import Any

import pytest
from bench_runs import PATIENCE

pytest.importorskip("ipykernel", reason="tests of notebooks need ipykernel")
start_new_kernel = pytest.importorskip("jupyter_client.manager").start_new_kernel


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    manager, client = start_new_kernel(startup_timeout=PATIENCE, kernel_name="python3")
    yield client
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def run(client: Any, code: str) -> list[dict[str, Any]]:
    """All that a cell shows, in order: messages of output, of displays and of their updates."""
    ran, seen = client.execute(code), []
    while True:
        try:
            message = client.get_iopub_msg(timeout=PATIENCE)
        except Empty as error:
            raise AssertionError(f"the kernel does not answer; it has shown {seen}") from error
        if message["parent_header"].get("msg_id") != ran:
            continue
        kind, content = message["header"]["msg_type"], message["content"]
        if kind == "status" and content["execution_state"] == "idle":
            return seen
        assert kind != "error", "\n".join(content["traceback"])
        if kind != "status":
            seen.append({"kind": kind, **content})


def test_a_fit_shows_its_phases_in_one_line(client: Any) -> None:
    seen = run(
        client,
        "import mipl, mipl.progress\n"
        "mipl.progress._PAUSE = 0\n"
        "mipl.BagGP(n_landmarks=20, cross_fit=2, verbose=True).fit(mipl.load('digits', r=1, seed=0)[:40]);",
    )
    lines = [each for each in seen if each["kind"] in ("display_data", "update_display_data")]
    assert [each["kind"] for each in lines].count("display_data") == 1
    assert len({each["transient"]["display_id"] for each in lines}) == 1
    texts = [each["data"]["text/plain"] for each in lines]
    assert any(re.match(r"BagGP: fold 2 of \d, bag regression \d+ of \d+, ", text) for text in texts)
    assert any(re.match(r"BagGP: bag likelihood \d+ of \d+, ", text) for text in texts)
    assert texts[-1].startswith("BagGP: done, ")
    assert not [each for each in seen if each["kind"] == "stream"]


def test_a_data_set_shows_itself_as_a_table(client: Any) -> None:
    seen = run(client, "import mipl\nmipl.load('digits', r=1, seed=0)")
    (shown,) = [each for each in seen if each["kind"] == "execute_result"]
    assert "<table" in shown["data"]["text/html"]
    assert shown["data"]["text/plain"].startswith("MIPLDataset('digits'")
