"""Prints what the page needs of the service's OpenAPI: `make types` makes its TypeScript types of it.

Only the operations that `web/src` names, without descriptions and without what they answer when something is wrong: so
what other programs ask for may change, and sentences may be mended, without a change of the page.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import everthread
from everthread.http.app import create_app
from everthread.settings import Settings

API = "/api/v1"
SOURCES = Path(__file__).parents[1] / "web" / "src"
_ASKED = re.compile(r'"(get|post|put|patch|delete)", "(/[\w/{}]+)"')
_TOLD_TO_PEOPLE = {"description", "summary", "title", "examples", "tags", "security", "operationId"}

Json = dict[str, Any]


def main() -> None:
    json.dump(pruned(whole(), asked(SOURCES)), sys.stdout)


def whole() -> Json:
    settings = Settings(database="memory://", model="scripted:echo")
    return create_app(everthread.open("memory://", worker=False), settings).openapi()


def asked(folder: Path) -> set[tuple[str, str]]:
    """The operations that the page's sources name, as method and path."""
    sources = (path.read_text(encoding="utf-8") for path in folder.rglob("*.ts*") if path.name != "schema.d.ts")
    return {(method, path) for source in sources for method, path in _ASKED.findall(source)}


def pruned(schema: Json, operations: set[tuple[str, str]]) -> Json:
    paths: dict[str, Json] = {}
    for method, path in sorted(operations):
        paths.setdefault(path, {})[method] = _bare(_good_answers(schema["paths"][API + path][method]))
    shapes = {name: _bare(shape) for name, shape in schema["components"]["schemas"].items()}
    needed = {name: shapes[name] for name in sorted(_reached(paths, shapes))}
    return {"openapi": schema["openapi"], "info": schema["info"], "paths": paths, "components": {"schemas": needed}}


def _good_answers(operation: Json) -> Json:
    return {**operation, "responses": {code: one for code, one in operation["responses"].items() if code < "300"}}


def _bare(value: Any, *, is_named: bool = False) -> Any:
    """Without words for people. Under `properties` a key is the name of a field, which may be any word."""
    if isinstance(value, list):
        return [_bare(one) for one in value]
    if not isinstance(value, dict):
        return value
    return {
        key: _bare(one, is_named=key == "properties" and not is_named)
        for key, one in value.items()
        if is_named or key not in _TOLD_TO_PEOPLE
    }


def _reached(value: object, shapes: dict[str, Json]) -> set[str]:
    """The names of the shapes that this refers to, and those do."""
    found: set[str] = set()
    waiting = list(_references(value))
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += _references(shapes[name])
    return found


def _references(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"].rpartition("/")[2]
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from _references(one)


if __name__ == "__main__":
    main()
