"""Skills: folders with a `SKILL.md` that says how to do one kind of work, read only when it is to be done.

    ---
    name: data-report
    description: Turn a table into findings and plots.
    tools: [read_file, plot]
    ---
    1. Look at the table before anything else …

A model is told their names. It reads one when the user names it with an @, or when it chooses it. A folder of one's own
goes before a shipped one of the same name; a broken one is reported and left out.
"""

from __future__ import annotations

from everthread.turn.skills.reading import SHIPPED, Problem, Skill, SkillBook, listing, prompt, skills_in, told

__all__ = ["SHIPPED", "Problem", "Skill", "SkillBook", "listing", "prompt", "skills_in", "told"]
