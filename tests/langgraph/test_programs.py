"""Programs as users of LangGraph write them, each in processes of its own: what it prints, and what it prints when it
goes on where the first process stopped.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.forkserver import WITH_LANGCHAIN, ForkServer

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
MORE_NEEDS = {"deep_agents": ("deepagents",), "remote_graph": ("langgraph.pregel.remote", "langgraph_sdk")}


@pytest.mark.parametrize("program", PRINTS)
def test_a_program_runs_and_goes_on_in_the_next_process(
    program: str, durable_url: str, forkserver: ForkServer, tmp_path: Path
) -> None:
    path = str(PROGRAMS / f"{program}.py")
    for printed in PRINTS[program]:
        needs = (*WITH_LANGCHAIN, *MORE_NEEDS.get(program, ()))
        done = forkserver.run_program(path, durable_url, folder=tmp_path, env=os.environ, needs=needs)
        assert (done.code, done.err, done.out.strip()) == (0, "", printed)
