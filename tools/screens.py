"""Makes a picture of every state of the page, in three widths, light and dark, English and Chinese: `make screens`.

All of them go into a folder (`screens/`, or the one that is named), to be looked at; with `--docs` those that
docs/how-to/the-page-in-pictures.md shows are made small and kept in docs/images/page.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright
from playwright.sync_api import Error as PlaywrightError

from tools.chromium import chromium
from tools.pictures import serving

Language = Literal["en", "zh"]
Theme = Literal["light", "dark"]
HEIGHTS: Mapping[int, int] = {1440: 900, 1024: 768, 390: 844}
DEMO = "/#/c/demo-journey"
SETTLE_MILLISECONDS = 500
IMAGES = Path(__file__).parents[1] / "docs" / "images" / "page"
QUALITY = 72


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """How the page is looked at."""

    width: int
    theme: Theme
    language: Language

    @property
    def is_phone(self) -> bool:
        return self.width < 900

    def say(self, english: str, chinese: str) -> str:
        return english if self.language == "en" else chinese

    def __str__(self) -> str:
        return f"{self.width}-{self.theme}-{self.language}"


State = Callable[[Page, Look], None]
STATES: dict[str, State] = {}


def state(show: State) -> State:
    STATES[show.__name__.replace("_", "-")] = show
    return show


@state
def first_visit(page: Page, look: Look) -> None:
    page.goto("/")
    page.locator(".empty").wait_for()


@state
def history(page: Page, look: Look) -> None:
    page.goto(DEMO)
    page.locator("article.message").first.wait_for()
    page.wait_for_timeout(1500)  # until what was recalled is marked


@state
def work(page: Page, look: Look) -> None:
    """Code, a table, a tool call and thinking."""
    page.goto("/#/c/work?at=2")
    page.locator("details.fold summary").first.click()


@state
def band(page: Page, look: Look) -> None:
    page.goto(f"{DEMO}?at=354")
    last = page.locator("section.band").last
    last.get_by_role("button").first.click()
    last.locator(".sides h3").first.wait_for()


@state
def model_view(page: Page, look: Look) -> None:
    page.goto(f"{DEMO}?view=model")
    page.locator(".block").first.wait_for()


@state
def context(page: Page, look: Look) -> None:
    page.goto(DEMO)
    if look.is_phone:
        page.get_by_role("tab", name=look.say("Context", "上下文")).click()
    page.locator(".column.right .legend").first.wait_for()
    page.locator(".column.right").evaluate("box => box.scrollTo(0, 620)")


@state
def conversations(page: Page, look: Look) -> None:
    page.goto(DEMO)
    if look.is_phone:
        page.get_by_role("tab", name=look.say("Conversations", "列表"), exact=True).click()
    page.locator(".conversation").first.wait_for()


@state
def search(page: Page, look: Look) -> None:
    page.goto(DEMO)
    if look.is_phone:
        page.get_by_role("tab", name=look.say("Conversations", "列表"), exact=True).click()
    page.locator('input[type="search"]').first.fill(look.say("grandmother allergy", "杭州"))
    page.locator("search .conversation").first.wait_for()


@state
def palette(page: Page, look: Look) -> None:
    page.goto(DEMO)
    page.locator("article.message").first.wait_for()
    page.keyboard.press("Control+k")
    page.locator("#palette-choices").wait_for()


@state
def shortcuts(page: Page, look: Look) -> None:
    page.goto(DEMO)
    page.locator("article.message").first.wait_for()
    page.keyboard.press("?")
    page.get_by_role("dialog").wait_for()


@state
def conversation_menu(page: Page, look: Look) -> None:
    page.goto(DEMO)
    page.locator("article.message").first.wait_for()
    page.get_by_role("button", name=look.say("More", "更多"), exact=True).click()
    page.get_by_role("menu").wait_for()


@state
def message_menu(page: Page, look: Look) -> None:
    page.goto("/#/c/work")
    message = page.locator("article.message").nth(1)
    message.hover()
    message.get_by_role("button", name=look.say("Message actions", "消息操作")).click()
    page.get_by_role("menu").wait_for()


@state
def model_menu(page: Page, look: Look) -> None:
    page.goto(DEMO)
    page.locator(".chooser").click()
    page.get_by_role("menu").wait_for()


@state
def account_menu(page: Page, look: Look) -> None:
    page.goto(DEMO)
    if look.is_phone:
        page.get_by_role("tab", name=look.say("Conversations", "列表"), exact=True).click()
    page.locator(".who[aria-haspopup]").click()
    page.get_by_role("menu").wait_for()


@state
def share(page: Page, look: Look) -> None:
    page.goto("/#/c/work")
    page.get_by_role("button", name=look.say("More", "更多"), exact=True).click()
    page.get_by_role("menuitem", name=look.say("Share", "分享")).click()
    page.get_by_role("dialog").wait_for()


def sessions(page: Page, look: Look) -> None:
    """Of coding agents, one of them with what it took."""
    managed("agents")(page, look)
    page.locator(".project li", has_text="file deleted" if look.language == "en" else "文件已删除").get_by_role(
        "button"
    ).last.click()
    page.locator(".proof table").wait_for()


def managed(section: str) -> State:
    def show(page: Page, look: Look) -> None:
        page.goto(DEMO)
        page.locator("article.message").first.wait_for()
        page.keyboard.press("Control+k")
        page.get_by_role("combobox").fill(look.say(*SECTIONS[section]))
        page.keyboard.press("Enter")
        page.get_by_role("dialog").get_by_role("tabpanel").wait_for()

    return show


SECTIONS = {
    "agents": ("Agents", "编程智能体"),
    "verify": ("Verify", "校验"),
    "memories": ("Memories", "记忆"),
    "knowledge": ("Knowledge", "知识"),
    "deleted": ("Deleted", "已删除"),
    "server": ("Server", "服务器"),
}
STATES |= {f"manage-{section}": managed(section) for section in SECTIONS} | {"manage-agents": sessions}


@state
def export(page: Page, look: Look) -> None:
    page.goto("/#/c/work")
    page.get_by_role("button", name=look.say("More", "更多"), exact=True).click()
    page.get_by_role("menuitem", name=look.say("Export", "导出")).click()
    page.get_by_role("dialog").wait_for()


@state
def folder(page: Page, look: Look) -> None:
    page.goto("/#/c/work")
    page.get_by_role("button", name=look.say("More", "更多"), exact=True).click()
    page.get_by_role("menuitem", name=look.say("Folder and tags", "文件夹与标签")).click()
    page.get_by_role("dialog").wait_for()


@state
def feedback(page: Page, look: Look) -> None:
    page.goto("/#/c/work")
    message = page.locator("article.message").nth(2)
    message.hover()
    message.get_by_role("button", name=look.say("Message actions", "消息操作")).click()
    page.get_by_role("menuitem", name=look.say("Bad answer", "回答得不好")).click()
    page.get_by_role("dialog").wait_for()


@state
def origin(page: Page, look: Look) -> None:
    page.goto(f"{DEMO}?at=1")
    message = page.locator("article.message").first
    message.hover()
    message.get_by_role("button", name=look.say("Message actions", "消息操作")).click()
    page.get_by_role("menuitem", name=look.say("Origin and reach", "来源与去向")).click()
    page.locator(".spread").wait_for()


@state
def erase(page: Page, look: Look) -> None:
    page.goto("/#/c/work")
    page.get_by_role("button", name=look.say("More", "更多"), exact=True).click()
    page.get_by_role("menuitem", name=look.say("Erase", "抹除")).click()
    page.get_by_role("dialog").wait_for()


@state
def not_there(page: Page, look: Look) -> None:
    page.goto("/#/c/no-such-conversation")
    page.locator(".gone").wait_for()


@state
def offline(page: Page, look: Look) -> None:
    page.goto("/#/c/work")
    page.locator("article.message").first.wait_for()
    page.context.set_offline(True)
    page.locator(".composer textarea").fill(look.say("And one more case, please.", "再加一个用例。"))
    page.keyboard.press("Enter")
    page.locator(".notice.lost, [data-sent=false]").first.wait_for()


@state
def sign_in(page: Page, look: Look) -> None:
    page.route(
        "**/api/v1/about", lambda route: route.fulfill(status=401, content_type="application/problem+json", body="{}")
    )
    page.goto("/")
    page.locator(".signin").wait_for()


@state
def watching(page: Page, look: Look) -> None:
    page.goto("/")
    page.locator(".starts button").first.click()
    page.locator('.replay[data-kind="compacted"]').wait_for(timeout=60_000)


def opened(browser: Browser, address: str, look: Look) -> Page:
    size = {"width": look.width, "height": HEIGHTS[look.width]}
    locale = look.say("en-GB", "zh-CN")
    context = browser.new_context(
        viewport=size,  # type: ignore[arg-type]
        locale=locale,
        color_scheme=look.theme,
        base_url=address,
        device_scale_factor=2 if look.is_phone else 1,
        has_touch=look.is_phone,
    )
    page = context.new_page()
    page.set_default_timeout(20_000)
    return page


WORK: list[dict[str, Any]] = [
    {"role": "user", "content": "Our retry helper swallows `CancelledError`. Can you find out why, and write a test?"},
    {
        "role": "assistant",
        "content": "",
        "tool_calls": [
            {
                "id": "call-1",
                "type": "function",
                "function": {"name": "read_file", "arguments": '{"path": "src/retry.py", "first_line": 1}'},
            }
        ],
    },
    {"role": "tool", "tool_call_id": "call-1", "content": "async def retried(call, times=3): …"},
    {
        "role": "assistant",
        "content": (
            "The `except BaseException` in `retried` catches the cancellation and tries again. Catch `Exception` "
            "instead:\n\n```python\nasync def retried(call: Call[T], times: int = 3) -> T:\n"
            '    """Call it until it succeeds; the last failure is raised."""\n'
            "    for attempt in range(1, times + 1):\n        try:\n            return await call()\n"
            "        except Exception:  # a cancellation passes\n            if attempt == times:\n"
            '                raise\n    raise AssertionError("unreachable")\n```\n\n'
            "| case | before | after |\n|---|---|---|\n| cancelled while waiting | tried again | raised at once |\n"
            "| `TimeoutError` | tried again | tried again |\n\n"
            "1. The test cancels the task in the middle of the first call.\n2. It expects **one** call, not three.\n"
        ),
    },
    {"role": "user", "content": "好的，谢谢！再写一条变更日志，中文就行。"},
    {"role": "assistant", "content": "- 修复：任务被取消时，`retried` 不再重试，而是立即抛出 `CancelledError`。"},
]
OTHERS = [
    "Weekend in Lisbon",
    "Quarterly report, second draft",
    "租房合同要点",
    "Names for the new service",
    "Why is CI slow?",
]


def seed(address: str) -> None:
    """Conversations beside the demo, so that the page looks as it does in use."""
    for title in OTHERS:
        id = ask(address, "conversations", {"title": title})["id"]
        ask(address, f"conversations/{id}/messages", {"messages": [{"role": "user", "content": title}]})
    ask(address, "conversations", {"id": "work", "title": "Retry swallows cancellation"})
    ask(address, "conversations/work/messages", {"messages": WORK})
    for text in ("The user's sister is allergic to nuts.", "Prefers short answers, in Chinese at work."):
        ask(address, "memories", {"text": text})


PROJECTS = {
    "/srv/shop": [("Why does the login test fail on CI only?", 12), ("Move the cart to the new API", 41)],
    "/srv/notes": [("Find the slowest query of the search", 23)],
}


def keep_sessions(folder: Path) -> None:
    """Sessions of a coding agent, of which one file was deleted after it was read."""
    home = folder / "home"
    env = {**os.environ, "HOME": str(home), "EVERTHREAD_DATABASE": f"sqlite:///{folder / 'et.db'}"}
    paths = []
    for project, held in PROJECTS.items():
        for question, answers in held:
            id = f"{len(paths):08}-0000-4000-8000-000000000000"
            path = home / ".claude" / "projects" / project.replace("/", "-") / f"{id}.jsonl"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(_session_lines(id, project, question, answers)), encoding="utf-8")
            paths.append(path)
    for _ in range(2):
        subprocess.run([sys.executable, "-m", "everthread", "watch", "--once"], check=True, cwd=folder, env=env)
        paths[0].unlink(missing_ok=True)


def _session_lines(id: str, project: str, question: str, answers: int) -> Iterator[str]:
    """A session as Claude Code writes it."""
    began = datetime.now(UTC) - timedelta(minutes=answers)
    before = None
    for number in range(answers + 1):
        at = (began + timedelta(minutes=number)).isoformat().replace("+00:00", "Z")
        message: dict[str, Any] = {"role": "user", "content": question}
        if number > 0:
            usage = {"input_tokens": 900, "cache_read_input_tokens": 31_000 + 400 * number, "output_tokens": 210}
            said = [{"type": "text", "text": f"Step {number} is done."}]
            message = {"role": "assistant", "id": f"msg_{number}", "model": "claude-sonnet-4-5", "content": said}
            message["usage"] = usage
        uuid = f"{number:08}-{id[9:]}"
        line = {"type": message["role"], "uuid": uuid, "parentUuid": before, "sessionId": id, "cwd": project}
        yield json.dumps({**line, "isSidechain": False, "timestamp": at, "message": message}) + "\n"
        before = uuid


def ask(address: str, path: str, body: dict[str, Any]) -> Any:
    request = urllib.request.Request(
        f"{address}/api/v1/{path}", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request) as response:
        return json.load(response)


def take(browser: Browser, address: str, name: str, look: Look, folder: Path) -> Path:
    page = opened(browser, address, look)
    try:
        STATES[name](page, look)
        page.wait_for_timeout(SETTLE_MILLISECONDS)
        image = Image.open(io.BytesIO(page.screenshot(animations="disabled"))).convert("RGB")
    finally:
        page.context.close()
    path = folder / f"{name}-{look}.png"
    image.save(path)
    return path


SHOWN: list[tuple[str, Look]] = [
    ("first-visit", Look(width=1440, theme="light", language="en")),
    ("history", Look(width=1440, theme="light", language="en")),
    ("history", Look(width=1440, theme="dark", language="zh")),
    ("work", Look(width=1440, theme="dark", language="en")),
    ("band", Look(width=1024, theme="light", language="en")),
    ("model-view", Look(width=1440, theme="light", language="zh")),
    ("origin", Look(width=1024, theme="light", language="en")),
    ("search", Look(width=1024, theme="light", language="en")),
    ("palette", Look(width=1024, theme="dark", language="en")),
    ("manage-agents", Look(width=1024, theme="light", language="en")),
    ("manage-memories", Look(width=1024, theme="light", language="zh")),
    ("history", Look(width=390, theme="light", language="en")),
    ("model-view", Look(width=390, theme="dark", language="zh")),
    ("context", Look(width=390, theme="light", language="zh")),
    ("conversations", Look(width=390, theme="dark", language="en")),
]
"""What docs/how-to/the-page-in-pictures.md shows."""


def keep_in_docs(browser: Browser, address: str) -> None:
    IMAGES.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as folder:
        for name, look in SHOWN:
            image = Image.open(take(browser, address, name, look, Path(folder)))
            image.save(IMAGES / f"{name}-{look}.webp", quality=QUALITY, method=6)


def looks(widths: list[int], themes: list[Theme], languages: list[Language]) -> list[Look]:
    return [
        Look(width=width, theme=theme, language=language)
        for width in widths
        for theme in themes
        for language in languages
    ]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--out", type=Path, default=Path("screens"))
    arguments.add_argument("--states", nargs="*", default=[], help="only these")
    arguments.add_argument("--widths", nargs="*", type=int, default=list(HEIGHTS))
    arguments.add_argument("--themes", nargs="*", default=["light", "dark"])
    arguments.add_argument("--languages", nargs="*", default=["en", "zh"])
    arguments.add_argument("--docs", action="store_true", help="make the pictures of the docs instead")
    arguments.add_argument("--address", help="of a server that runs already, with the demo in it")
    given = arguments.parse_args()
    program = chromium()
    if program is None:
        sys.exit("screens needs chromium: sh tools/chromium.sh")
    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        if given.address is None:
            with serving(Path(folder)) as address:
                keep_sessions(Path(folder))
                seed(address)
                take_all(browser, address, given)
        else:
            take_all(browser, given.address, given)
        browser.close()


def take_all(browser: Browser, address: str, given: argparse.Namespace) -> None:
    if given.docs:
        keep_in_docs(browser, address)
        return
    given.out.mkdir(parents=True, exist_ok=True)
    for look in looks(given.widths, given.themes, given.languages):
        for name in given.states or STATES:
            try:
                print(take(browser, address, name, look, given.out))
            except PlaywrightError as problem:  # the others are still worth seeing
                print(f"{name} {look}: {str(problem).splitlines()[0]}", file=sys.stderr)


if __name__ == "__main__":
    main()
