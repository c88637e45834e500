"""What was typed is shown as it was typed; what a model says is Markdown, of which nothing is dropped."""

from __future__ import annotations

import httpx
import pytest
from playwright.sync_api import Page, expect

TYPED = (
    'Why does Vec<String> differ from List<int>? if a<b and c>d then <div class="x">hello</div>',
    "<script>alert(1)</script>",
    "line one\nline two\n\n    indented",
    r"C:\new_folder\_x_\*.txt a*b*c __init__",
    "1986. A great year",
)


@pytest.mark.parametrize("text", TYPED)
def test_a_question_is_shown_as_it_was_typed(page: Page, server: str, text: str) -> None:
    said = {"messages": [{"role": "user", "content": text}, {"role": "assistant", "content": text}]}
    with httpx.Client(base_url=f"{server}/api/v1") as api:
        id = api.post("/conversations", json={}).raise_for_status().json()["id"]
        api.post(f"/conversations/{id}/messages", json=said).raise_for_status()
    page.goto(f"/#/c/{id}")
    question = page.locator('article[data-role="user"] .said')
    expect(question).to_be_visible()
    assert question.inner_text() == text


def test_what_looks_like_html_in_an_answer_is_shown(page: Page) -> None:
    page.goto("/")
    page.get_by_label("Write a message").fill(TYPED[0])
    page.get_by_label("Write a message").press("Enter")
    expect(page.locator('article[data-role="user"] .said')).to_have_text(TYPED[0])
    expect(page.locator('article[data-seq][data-role="assistant"] .said')).to_have_text(TYPED[0])
    page.get_by_role("tab", name="What the model sees").click()
    expect(page.locator('.block[data-role="user"] .said')).to_have_text(TYPED[0])


def test_formulas_are_drawn_and_prices_are_not(page: Page, server: str) -> None:
    told = (
        "The roots are\n\n$$x = \\frac{-b \\pm \\sqrt{b^2-4ac}}{2a}$$\n\nand \\(x_1 x_2 = c/a\\), "
        "for $5 or $10, as in `$x$`. Of $\\tikz{x}$ nothing is known."
    )
    said = {"messages": [{"role": "user", "content": "$x$"}, {"role": "assistant", "content": told}]}
    with httpx.Client(base_url=f"{server}/api/v1") as api:
        id = api.post("/conversations", json={}).raise_for_status().json()["id"]
        api.post(f"/conversations/{id}/messages", json=said).raise_for_status()
    page.goto(f"/#/c/{id}")
    answer = page.locator('article[data-role="assistant"] .said')
    expect(answer.locator("math")).to_have_count(2)
    expect(answer.locator('math[display="block"] mfrac msqrt')).to_have_count(1)
    expect(answer).to_contain_text("for $5 or $10, as in $x$. Of")
    expect(answer.locator("code.formula")).to_have_text("\\tikz{x}")
    expect(page.locator('article[data-role="user"] .said')).to_have_text("$x$")


def test_a_title_from_right_to_left_is_cut_at_its_end(page: Page, server: str) -> None:
    title = "مرحبا بالعالم " * 8
    httpx.post(f"{server}/api/v1/conversations", json={"id": "rtl", "title": title.strip()}).raise_for_status()
    page.goto("/#/c/rtl")
    listed = page.locator(".conversation[aria-current=true] .title")
    expect(listed).to_be_visible()
    assert listed.evaluate("element => getComputedStyle(element).direction") == "rtl"
