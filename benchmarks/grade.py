"""How often the one message that a rare fact of a question leads to is one that the question needs: what `everthread
grade` takes for a source, beside the evidence of the recall sets.

    python -m benchmarks.grade [--sets open,locomo] [--out FILE.json]
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path

from benchmarks import report
from benchmarks.everyday import Talk
from benchmarks.recall_data import SETS
from everthread.replay.grade import is_identifying
from everthread.text.facts import find_facts


def measure(name: str, talks: list[Talk]) -> report.Row:
    """Of the questions of a set those with a rare fact, and how many of the sources are evidence."""
    questions = graded = sources = right = 0
    for talk in talks:
        said_by: dict[str, list[str]] = defaultdict(list)
        for message in talk.messages:
            for fact in find_facts(message.text):
                said_by[fact.normal].append(message.id)
        for question in talk.questions:
            questions += 1
            found = [said_by[fact.normal] for fact in find_facts(question.text) if is_identifying(fact)]
            only = [ids[0] for ids in found if len(ids) == 1]
            graded += bool(only)
            sources += len(only)
            right += sum(id in question.evidence for id in only)
    precision = round(100 * right / sources, 1) if sources else None
    return {"set": name, "questions": questions, "graded": graded, "sources": sources, "precision": precision}


def main() -> None:
    """Measure what is here, show, and write when asked to."""
    parser = argparse.ArgumentParser(prog="benchmarks.grade", description=__doc__)
    parser.add_argument("--sets", default="open,locomo,beam,zh,tools")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    names = [name for name in given.sets.split(",") if (path := SETS[name].path) is None or path.exists()]
    rows = [measure(name, SETS[name].load()) for name in names]
    report.show("grade", rows)
    if given.out:
        report.write(given.out, {"grade": rows})


if __name__ == "__main__":
    main()
