"""Makes the pictures and the recording of the README from the real page: `make pictures`.

It serves a database of its own with the demo in it, and looks at the page in Chromium: the history with a compaction's
band, what the model sees, and a recording of *Watch it happen* (docs/images/watch.webp, animated).
"""

from __future__ import annotations

import io
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image, ImageChops
from playwright.sync_api import Browser, Page, sync_playwright

from tools.chromium import chromium

IMAGES = Path(__file__).parents[1] / "docs" / "images"
SIZE = {"width": 1280, "height": 800}
RECORDED = (900, 562)
"""Pixels of the recording: what is to be read stays readable, and the file stays below a megabyte."""
FRAME_SECONDS = 0.4
LAST_SECONDS = 4.0
MOST_SECONDS = 90.0
QUALITY = 62


def main() -> None:
    program = chromium()
    if program is None:
        sys.exit("pictures needs chromium: sh tools/chromium.sh")
    with TemporaryDirectory() as folder, serving(Path(folder)) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        record(browser, address)
        take(browser, address)
        browser.close()


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """A server with the demo and a model that says everything back."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    env = {**os.environ, "EVERTHREAD_DATABASE": f"sqlite:///{folder / 'et.db'}", "EVERTHREAD_MODEL": "scripted:echo"}
    everthread = [sys.executable, "-m", "everthread"]
    subprocess.run([*everthread, "demo", "--load"], check=True, cwd=folder, env=env)
    with subprocess.Popen([*everthread, "serve", "--port", str(port)], cwd=folder, env=env) as server:
        try:
            yield wait_for(f"http://127.0.0.1:{port}")
        finally:
            server.terminate()


def wait_for(address: str) -> str:
    end = time.monotonic() + MOST_SECONDS
    while time.monotonic() < end:
        try:
            with urllib.request.urlopen(f"{address}/readyz"):
                return address
        except OSError:
            time.sleep(0.3)
    raise TimeoutError(f"no server at {address}")


def opened(browser: Browser, address: str) -> Page:
    page = browser.new_context(viewport=SIZE, locale="en-GB", base_url=address).new_page()  # type: ignore[arg-type]
    page.goto("/")
    page.get_by_role("button", name="Watch it happen", exact=True).wait_for()
    return page


def record(browser: Browser, address: str) -> None:
    """`Watch it happen`, from the first click to the proof; frames in which nothing changes are one long one."""
    page = opened(browser, address)
    frames, lengths = [shot(page)], [1200]
    page.get_by_role("button", name="Watch it happen", exact=True).click()
    end = time.monotonic() + MOST_SECONDS
    while time.monotonic() < end and page.locator('.replay[data-kind="verified"]').count() == 0:
        began = time.monotonic()
        add(frames, lengths, shot(page))
        page.wait_for_timeout(max(0.0, FRAME_SECONDS - (time.monotonic() - began)) * 1000)
    page.wait_for_timeout(800)
    add(frames, lengths, shot(page))
    lengths[-1] = int(LAST_SECONDS * 1000)
    frames[0].save(
        IMAGES / "watch.webp",
        save_all=True,
        append_images=frames[1:],
        duration=lengths,
        loop=0,
        quality=QUALITY,
        method=4,
    )


def add(frames: list[Image.Image], lengths: list[int], frame: Image.Image) -> None:
    milliseconds = int(FRAME_SECONDS * 1000)
    if ImageChops.difference(frames[-1], frame).getbbox() is None:
        lengths[-1] += milliseconds
    else:
        frames.append(frame)
        lengths.append(milliseconds)


def shot(page: Page) -> Image.Image:
    image = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    return image.resize(RECORDED, Image.Resampling.LANCZOS)


def take(browser: Browser, address: str) -> None:
    """The history where a band is open, and a request block by block."""
    page = opened(browser, address)
    page.goto("/#/c/demo-journey?at=354")
    page.locator('article[data-target="true"]').wait_for()
    page.wait_for_timeout(1500)  # until it stands where one jumped to: else the click moves on with it
    band = page.locator("section.band").last
    band.get_by_role("button").first.click()
    band.get_by_role("heading", name="Originals").wait_for()
    page.wait_for_timeout(1500)
    save(page, "history.png")
    page.goto("/#/c/demo-journey?view=model")
    page.locator(".block").last.wait_for()
    page.wait_for_timeout(1500)
    save(page, "model-view.png")


def save(page: Page, name: str) -> None:
    image = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    image.quantize(256, dither=Image.Dither.NONE).save(IMAGES / name, optimize=True)


if __name__ == "__main__":
    main()
