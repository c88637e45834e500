"""What was typed is shown as it was typed; what a model says is Markdown, of which nothing is dropped."""

from __future__ import annotations

import httpx
import pytest
from playwright.sync_api import Locator, Page, expect

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


def _answer(page: Page, server: str, text: str) -> Locator:
    said = {"messages": [{"role": "user", "content": "$x$"}, {"role": "assistant", "content": text}]}
    with httpx.Client(base_url=f"{server}/api/v1") as api:
        id = api.post("/conversations", json={}).raise_for_status().json()["id"]
        api.post(f"/conversations/{id}/messages", json=said).raise_for_status()
    page.goto(f"/#/c/{id}")
    return page.locator('article[data-role="assistant"] .said')


def test_formulas_are_drawn_and_prices_are_not(page: Page, server: str) -> None:
    answer = _answer(
        page,
        server,
        "The roots are\n\n$$x = \\frac{-b \\pm \\sqrt{b^2-4ac}}{2a}$$\n\nand \\(x_1 x_2 = c/a\\), "
        "for $5 or $10, as in `$x$`. Of $\\tikz{x}$ nothing is known.",
    )
    expect(answer.locator("math")).to_have_count(2)
    expect(answer.locator('math[display="block"] mfrac msqrt')).to_have_count(1)
    expect(answer).to_contain_text("for $5 or $10, as in $x$. Of")
    expect(answer.locator("code.formula")).to_have_text("\\tikz{x}")
    expect(page.locator('article[data-role="user"] .said')).to_have_text("$x$")


KNOWN = (
    r"\sum_{i=1}^{n} i \le \int_0^\infty f'(x)\,dx",
    r"A = \begin{pmatrix} 1 & 0 \\ 0 & 1 \end{pmatrix}",
    r"|x| = \begin{cases} x & \text{if } x \ge 0 \\ -x & \text{否则} \end{cases}",
    r"\begin{align} \nabla \cdot \vec{E} &= \rho \label{root} \\ \hat{H}\psi &= E\psi \tag{2} \end{align}",
    r"\begin{aligned} a &= b \nonumber \\ &= \mathbb{R}^n \boxed{\alpha} \cancel{x} \ce{H2O} \end{aligned}",
)


def test_an_answer_has_what_formulas_of_answers_have(page: Page, server: str) -> None:
    answer = _answer(page, server, "\n\n".join(f"$${tex}$$" for tex in KNOWN))
    expect(answer.locator('math[display="block"]')).to_have_count(len(KNOWN))
    expect(answer.locator("code.formula")).to_have_count(0)
    expect(answer.locator("[id], a, img")).to_have_count(0)


HOSTILE = (
    "{" * 10_000 + "x" + "}" * 10_000,
    r"\frac{" * 300 + "x" + "}{2}" * 300,
    "x+" * 10_000,
    r"\def\x{\x\x}\x",
    r"\edef\x{\x}\gdef\y{\y\y}\y",
    r"\let\d\def\d\x{y}\x",
    r"\newcommand{\x}{\x\x}\x",
    r"\nonumber\@eqnsw",
    r"\href{javascript:alert(1)}{x}",
    r"\url{javascript:alert(1)}",
    r"x\ref{root}",
    r"\eqref{root}",
    r"\includegraphics{https://elsewhere.example/a.png}",
    r"\class{signin}{x}",
    r"\style{position:fixed}{x}",
    r"\data{a=b}{x}",
    r"\id{root}{x}",
)


def test_a_formula_that_is_more_than_a_formula_stays_as_it_was_written(page: Page, server: str) -> None:
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    answer = _answer(page, server, "$y$ " + " ".join(f"${tex}$" for tex in HOSTILE))
    expect(answer.locator("math")).to_have_count(1)
    assert answer.locator("code.formula").all_inner_texts() == list(HOSTILE)
    expect(answer.locator("a, img, [style], [id]")).to_have_count(0)
    expect(_answer(page, server, "$$" + "x+" * 50_000 + "y$$")).to_be_visible()
    expect(page.locator("math")).to_have_count(0)
    assert errors == []


def test_no_formula_draws_over_what_stands_around_it(page: Page, server: str) -> None:
    math = _answer(page, server, r"a $\kern-10em\colorbox{red}{\rule{30em}{3em}}$ b").locator("math")
    over = """math => {
        const {y, height} = math.getBoundingClientRect();
        const row = Array.from({length: innerWidth}, (_, x) => document.elementFromPoint(x, y + height / 2));
        const {left, right} = math.closest(".said").getBoundingClientRect();
        return row.flatMap((found, x) => found && math.contains(found) && (x < left || x > right) ? [x] : []);
    }"""
    assert math.evaluate(over) == []


def test_what_draws_formulas_is_loaded_when_there_is_one(page: Page, server: str) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    expect(_answer(page, server, "for $5 or $10")).to_be_visible()
    page.wait_for_load_state("networkidle")
    assert not [url for url in asked if "Formula" in url]
    expect(_answer(page, server, "$x$").locator("math")).to_have_count(1)
    assert [url for url in asked if "Formula" in url]


def test_a_title_from_right_to_left_is_cut_at_its_end(page: Page, server: str) -> None:
    title = "مرحبا بالعالم " * 8
    httpx.post(f"{server}/api/v1/conversations", json={"id": "rtl", "title": title.strip()}).raise_for_status()
    page.goto("/#/c/rtl")
    listed = page.locator(".conversation[aria-current=true] .title")
    expect(listed).to_be_visible()
    assert listed.evaluate("element => getComputedStyle(element).direction") == "rtl"
