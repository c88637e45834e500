"""The page with a conversation of 10,000 messages in Chromium: how soon its newest are there, what scrolling
through all of them leaves in memory, how large the bundle is.

    python -m benchmarks.page --rounds 5 --out docs/benchmarks/page-COMMIT.json

Bytes and memory do not depend on who else uses the machine; times do.
"""

from __future__ import annotations

import argparse
import gzip
import shutil
import statistics
import tempfile
from pathlib import Path
from typing import Any

import httpx
from playwright.sync_api import Browser, CDPSession, Page, sync_playwright

from benchmarks import report
from everthread.http.page import FOLDER
from tests.forkserver import ForkServer
from tests.page.conftest import BARE, Served, serving

CHUNK = 1000
LOOK_EVERY = 10
"""Steps up between two looks at the heap."""
PATIENCE_MILLISECONDS = 120_000
_WATCH = """
  new MutationObserver(() => {
    if (window.shownAt) return;
    if (document.querySelector("article[data-seq='%d']")) window.shownAt = performance.now();
  }).observe(document, { subtree: true, childList: true });
"""
_OLDEST = "Math.min(...[...document.querySelectorAll('article[data-seq]')].map((one) => Number(one.dataset.seq)))"
_UP = "document.querySelector('[role=log]').scrollTop = 0"


def fill(served: Served, messages: int) -> None:
    """A conversation of this length, questions and answers of a few lines."""
    api = f"{served.address}/api/v1/conversations"
    httpx.post(api, json={"id": "long", "title": "A long one"}).raise_for_status()
    for start in range(0, messages, CHUNK):
        said = [_message(number) for number in range(start, min(start + CHUNK, messages))]
        httpx.post(f"{api}/long/messages", json={"messages": said}, timeout=120).raise_for_status()


def _message(number: int) -> dict[str, Any]:
    text = f"message {number}: " + "the slow train stops in the valley, and **nobody** minds. " * (1 + number % 4)
    return {"role": ("user", "assistant")[number % 2], "content": text}


def opened(browser: Browser, address: str, newest: int) -> tuple[Page, float]:
    """A page that nothing is cached for, and the seconds until the newest message was drawn."""
    page = browser.new_context(viewport={"width": 1400, "height": 900}, base_url=address).new_page()
    page.set_default_timeout(PATIENCE_MILLISECONDS)
    page.add_init_script(_WATCH % newest)
    page.goto("/#/c/long")
    page.locator(f"article[data-seq='{newest}']").wait_for()
    return page, float(page.evaluate("window.shownAt")) / 1000


def metrics(session: CDPSession) -> dict[str, float]:
    """What the page holds, once what it no longer needs is given back."""
    session.send("HeapProfiler.collectGarbage")
    return {one["name"]: one["value"] for one in session.send("Performance.getMetrics")["metrics"]}


def scrolled(page: Page) -> dict[str, Any]:
    """Scroll from the newest message up to the first, page by page; heap and nodes before, at most and after."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")
    page.wait_for_load_state("networkidle")
    seen = [metrics(session)]
    pages = 0
    while (oldest := page.evaluate(_OLDEST)) > 1:
        page.evaluate(_UP)
        while page.evaluate(_OLDEST) >= oldest:
            page.wait_for_timeout(20)
        pages += 1
        if pages % LOOK_EVERY == 0:
            seen.append(metrics(session))
    seen.append(metrics(session))
    heaps = [one["JSHeapUsedSize"] / 1e6 for one in seen]
    return {
        "heap MB at the newest": heaps[0],
        "heap MB at most": max(heaps),
        "heap MB at the first": heaps[-1],
        "nodes at most": max(one["Nodes"] for one in seen),
    }


def bundle() -> list[report.Row]:
    """What a first visit loads."""
    files = sorted(path for path in FOLDER.rglob("*") if path.is_file())
    rows: list[report.Row] = [
        {"file": path.suffix.lstrip("."), "bytes": len(body), "gzip bytes": len(gzip.compress(body, 9))}
        for path in files
        for body in (path.read_bytes(),)
    ]
    total = {name: sum(row[name] for row in rows) for name in ("bytes", "gzip bytes")}
    return [*rows, {"file": "all", **total}]


def measured(rounds: int, messages: int) -> dict[str, list[report.Row]]:
    with (
        tempfile.TemporaryDirectory() as place,
        ForkServer(Path(place)) as forkserver,
        serving(forkserver, Path(place)) as served,
        sync_playwright() as playwright,
    ):
        served.begin()
        fill(served, messages)
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=BARE)
        times = []
        for _ in range(rounds):
            page, seconds = opened(browser, served.address, messages)
            times.append(seconds)
            page.context.close()
        page, _ = opened(browser, served.address, messages)
        held = scrolled(page)
        browser.close()
    timed = {"messages": messages, "least s": min(times), "median s": statistics.median(times), "samples": times}
    return {"opening": [timed], "scrolling through all": [{"messages": messages, **held}], "bundle": bundle()}


def main() -> None:
    """Parse, run, show, and write when asked to."""
    parser = argparse.ArgumentParser(prog="benchmarks.page", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--messages", type=int, default=10_000)
    parser.add_argument("--out", type=Path, help="write JSON here")
    given = parser.parse_args()
    found = measured(given.rounds, given.messages)
    for title, rows in found.items():
        report.show(title, rows)
    if given.out:
        report.write(given.out, found)


if __name__ == "__main__":
    main()
