"""The page at `/`: files that `make web` builds from `web/`, handed out as they are.

They say nothing about anybody, so they need no key; what the page then fetches does.
"""

from __future__ import annotations

from pathlib import Path

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.responses import FileResponse, HTMLResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

FOLDER = Path(__file__).parent / "static"
ASSETS = "/assets"
ICON = "/icon.svg"

_NOT_BUILT = """<!doctype html><html lang="en"><title>everthread</title><h1>everthread is running</h1>
<p>The page has not been built: run <code>make web</code> in the project's folder, or install the wheel.
<p>The API for programs: <a href="/openapi.json">/openapi.json</a></html>"""


class _Assets(StaticFiles):
    """Their names hold a hash of their content, so a browser may cache them forever."""

    async def check_config(self) -> None:
        """Do nothing: without a built page there are no files, and that is not an error."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        try:
            response = await super().get_response(path, scope)
        except ValueError:  # a NUL
            raise HTTPException(404) from None
        response.headers["Cache-Control"] = "public, max-age=31536000, immutable"
        return response


def install(app: FastAPI, folder: Path = FOLDER) -> None:
    """Add the page to the service."""

    async def page() -> Response:
        index = folder / "index.html"
        if not index.is_file():
            return HTMLResponse(_NOT_BUILT)
        return FileResponse(index, headers={"Cache-Control": "no-cache"})

    async def icon() -> Response:
        path = folder / "icon.svg"
        return FileResponse(path) if path.is_file() else Response(status_code=404)

    app.add_api_route("/", page, include_in_schema=False)
    app.add_api_route(ICON, icon, include_in_schema=False)
    app.mount(ASSETS, _Assets(directory=folder / "assets", check_dir=False))
