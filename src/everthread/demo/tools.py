"""What the demo's agent can look up: made up, but the same every time and without any network."""

from __future__ import annotations

from typing import Any, Final
from zlib import crc32

from langchain_core.tools import BaseTool, tool


def _number(*words: str, below: int) -> int:
    return crc32("|".join(words).encode()) % below


def _clock(minutes: int) -> str:
    return f"{minutes // 60 % 24:02}:{minutes % 60:02}"


@tool
async def find_train(origin: str, destination: str, kind: str) -> str:
    """A train from one town to another; the kind is slow or fast."""
    number = f"{'G' if kind == 'fast' else 'K'}{1000 + _number(origin, destination, kind, below=8000)}"
    leaves = 360 + _number(destination, kind, below=840)
    minutes = (90 if kind == "fast" else 300) + _number(origin, destination, below=240)
    price = minutes * (45 if kind == "fast" else 12) // 60
    return f"{number} leaves {origin} {_clock(leaves)}, arrives {destination} {_clock(leaves + minutes)}, {price} CNY"


@tool
async def forecast(town: str, month: str) -> str:
    """What the weather of a town was like in that month of past years."""
    low = 6 + _number(town, below=9)
    return f"{town}, {month}: {low} to {low + 9} °C, {3 + _number(town, month, below=12)} days of rain"


@tool
async def guide(town: str) -> str:
    """What the printed guide says about a town."""
    page = 40 + _number(town, below=400)
    return f"Guide, page {page}: {town}. Museums open 9:00 to 17:00, closed on Mondays. A map is on page {page + 1}."


@tool
async def note(text: str) -> str:
    """Keep a note."""
    return f"noted: {text}"


_DAYS: Final = 31
_HALTS: Final = 14


def lengthened(result: dict[str, Any]) -> dict[str, Any]:
    """A tool's message as long as a real tool's: a forecast with its days, a train with its halts."""
    lines: list[str] = []
    text = str(result["content"])
    if result["name"] == "forecast":
        days = range(1, _DAYS + 1)
        lines = [f"day {day}: {9 + _number(text, str(day), below=12)} °C, {_weather(text, day)}" for day in days]
    elif result["name"] == "find_train":
        lines = [f"halt {halt}: {_clock(_number(text, str(halt), below=1440))}" for halt in range(1, _HALTS + 1)]
    return {**result, "content": "\n".join((text, *lines))}


def _weather(text: str, day: int) -> str:
    return ("dry", "cloudy", "rain in the afternoon", "fog until ten")[_number(text, str(day), "sky", below=4)]


TOOLS: list[BaseTool] = [find_train, forecast, guide, note]
