"""Programs as users of LangGraph write them, each in processes of its own: what it prints, and what it prints when it
goes on where the first process stopped.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parent / "programs"
PRINTS: dict[str, tuple[str, str]] = {
    "structured_output": (
        "6 messages; Contact(name='Ann', address=Address(city='Kunming'))",
        "12 messages; Contact(name='Ann', address=Address(city='Kunming'))",
    ),
    "interrupts": (
        "asked: Transfer(to='Ann', amount=100)",
        "answered: Approval(verdict=<Verdict.YES: 'yes'>, by='Bob')",
    ),
    "subgraphs": (
        "4 messages, the last: word word: good",
        "8 messages, the last: word word word word: good",
    ),
    "store_with_index": ("nearest to 'a zebra': zebra zoo", "nearest to 'a zebra': a zebra"),
    "time_travel": (
        "a joke about dogs / a joke about cats / 8 states",
        "a joke about dogs / a joke about cats / 8 states",
    ),
    "map_reduce": (
        "5 findings, the best: Finding(number=5, words=5)",
        "10 findings, the best: Finding(number=5, words=5)",
    ),
    "functional": ("cats v1: fine", "cats v2: fine"),
    "deep_agents": (
        "6 messages, ['/notes.md']; They eat grass.",
        "10 messages, ['/notes.md']; zebras are striped",
    ),
    "remote_graph": (
        "1 so far; 3 states; 3 messages; 1 so far",
        "4 so far; 7 states; 6 messages; 3 so far",
    ),
    "sync_threads": ("[12] messages in each of 8 threads", "[24] messages in each of 8 threads"),
}


def output_of(program: str, argument: str, python: str = sys.executable) -> str:
    """What a program prints; it must end well, and without a word on stderr."""
    path = PROGRAMS / f"{program}.py"
    ran = subprocess.run([python, "-W", "error", path, argument], capture_output=True, text=True, timeout=100)
    assert (ran.returncode, ran.stderr) == (0, ""), ran.stderr
    return ran.stdout.strip()


@pytest.mark.parametrize("program", PRINTS)
def test_a_program_runs_and_goes_on_in_the_next_process(program: str, durable_url: str) -> None:
    assert (output_of(program, durable_url), output_of(program, durable_url)) == PRINTS[program]
