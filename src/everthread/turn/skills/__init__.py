"""Skills: folders with a `SKILL.md` that says how to do one kind of work, read only when it is to be done.

    ---
    name: data-report
    description: Turn a table into findings and plots.
    tools: [read_file, plot]
    ---
    1. Look at the table before anything else …

A model sees their names. It reads one when the user names it with an @, or when it chooses to. A user's skill overrides
a shipped one of the same name; a broken one is reported and left out.
"""

from __future__ import annotations

from everthread.turn.skills.load import (
    SHIPPED_SKILLS,
    Skill,
    SkillProblem,
    SkillSet,
    list_names,
    load_skills,
    render_skill,
    skills_prompt,
)

__all__ = [
    "SHIPPED_SKILLS",
    "Skill",
    "SkillProblem",
    "SkillSet",
    "list_names",
    "load_skills",
    "render_skill",
    "skills_prompt",
]
