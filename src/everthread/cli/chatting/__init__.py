"""The terminal chat, from the inside out.

talk.py      who talks: the conversation, the agent, the model; what can be done with them
markdown.py  an answer as it comes: finished paragraphs are printed, the rest is redrawn
folding.py   thinking and tool calls as a line each
screens.py   what a turn tells, on a terminal, as plain text, or as JSON
slash.py     commands that begin with a slash
loop.py      the prompt, and what follows an input
"""

from __future__ import annotations
