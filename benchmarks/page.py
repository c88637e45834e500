"""The page in Chromium: how soon the newest of 10,000 messages, 2,000 conversations and a message of 5 MB are there,
the longest time it cannot answer, what scrolling through all messages leaves in memory, and what a visit loads.

    python -m benchmarks.page --rounds 5 --out docs/benchmarks/page-COMMIT.json

Bytes and memory do not depend on who else uses the machine; times do.
"""

from __future__ import annotations

import argparse
import gzip
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx
from playwright.sync_api import Browser, CDPSession, Page, sync_playwright

from benchmarks import report
from everthread.http.page import FOLDER
from tests.forkserver import ForkServer
from tests.page.conftest import BARE, Served, serving
from tools.chromium import chromium

CHUNK = 1000
LOOK_EVERY = 10
"""Steps up between two looks at the heap."""
PATIENCE_MILLISECONDS = 120_000
CONVERSATIONS = 2000
LARGE_BYTES = 5_000_000
_WATCH = """
  window.longest = 0;
  new PerformanceObserver((list) => {
    for (const task of list.getEntries()) window.longest = Math.max(window.longest, task.duration);
  }).observe({ type: "longtask", buffered: true });
  new MutationObserver(() => {
    if (window.shownAt) return;
    if (document.querySelector("%s")) window.shownAt = performance.now();
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


def opened(browser: Browser, address: str, place: str, wanted: str) -> tuple[Page, float]:
    """A page that nothing is cached for, and the seconds until something wanted was drawn."""
    page = browser.new_context(viewport={"width": 1400, "height": 900}, base_url=address).new_page()
    page.set_default_timeout(PATIENCE_MILLISECONDS)
    page.add_init_script(_WATCH % wanted)
    page.goto(place)
    page.locator(wanted).first.wait_for()
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


def many(browser: Browser, served: Served) -> report.Row:
    """2,000 conversations: the first of them drawn, and all scrolled through."""
    for number in range(CONVERSATIONS):
        body = {"id": f"many-{number}", "title": f"talk {number}"}
        httpx.post(f"{served.address}/api/v1/conversations", json=body, timeout=60).raise_for_status()
    page, seconds = opened(browser, served.address, "/", ".conversation")
    last = page.get_by_title("talk 0", exact=True)
    began = time.perf_counter()
    while last.count() == 0:
        page.evaluate("document.querySelector('nav.conversations').scrollTop = 1e9")
        page.wait_for_timeout(20)
    row = {
        "conversations": CONVERSATIONS,
        "first s": seconds,
        "all scrolled through s": time.perf_counter() - began,
        "lines drawn": page.locator(".conversation").count(),
    }
    page.context.close()
    return row


def large(browser: Browser, served: Served) -> report.Row:
    """A message of 5 MB: until it is there, and the longest time that the page could not answer."""
    api = f"{served.address}/api/v1/conversations"
    httpx.post(api, json={"id": "large"}).raise_for_status()
    text = ("the **slow** train stops in the valley, `nobody` minds.\n" * LARGE_BYTES)[:LARGE_BYTES]
    said = {"messages": [{"role": "user", "content": text}]}
    httpx.post(f"{api}/large/messages", json=said, timeout=120).raise_for_status()
    page, seconds = opened(browser, served.address, "/#/c/large", "article[data-seq='1']")
    page.get_by_role("button", name="Show all").click()
    page.get_by_role("button", name="Show less").wait_for()
    page.wait_for_timeout(500)
    row = {"bytes": LARGE_BYTES, "shown s": seconds, "longest task ms": page.evaluate("window.longest")}
    page.context.close()
    return row


def bundle(page: Page) -> list[report.Row]:
    """What a first visit loads of the page."""
    names = page.evaluate("performance.getEntriesByType('resource').map((one) => new URL(one.name).pathname)")
    loaded = {FOLDER / "index.html", *(FOLDER / name.lstrip("/") for name in names)}
    files = sorted(path for path in loaded if path.is_file())
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
        browser = playwright.chromium.launch(executable_path=chromium(), args=BARE)
        newest = f"article[data-seq='{messages}']"
        times = []
        for _ in range(rounds):
            page, seconds = opened(browser, served.address, "/#/c/long", newest)
            times.append(seconds)
            page.context.close()
        page, _ = opened(browser, served.address, "/#/c/long", newest)
        files = bundle(page)
        held = scrolled(page)
        page.context.close()
        huge, listed = large(browser, served), many(browser, served)
        browser.close()
    timed = {"messages": messages, "least s": min(times), "median s": statistics.median(times), "samples": times}
    return {
        "opening": [timed],
        "scrolling through all": [{"messages": messages, **held}],
        "a large message": [huge],
        "many conversations": [listed],
        "bundle": files,
    }


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
