"""The files of a page, which are read once."""

from __future__ import annotations

from pathlib import Path

from fastapi import APIRouter
from starlette.responses import Response

from onion.http.refused import Refused

MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
}


def page_routes(folder: Path) -> APIRouter:
    """Return the routes ``/`` and ``/static``.

    The files are read once, here, instead of by starlette's StaticFiles: callers without a token open no file and use
    no thread of the training process.
    """
    router, files = APIRouter(), read_page(folder)

    def send(name: str) -> Response:
        if name not in files:
            raise Refused("There is no such file.", 404)
        content, media_type = files[name]
        return Response(content, media_type=media_type)

    @router.get("/")
    async def index() -> Response:
        return send("index.html")

    @router.get("/static/{name:path}")
    async def static(name: str) -> Response:
        return send(name)

    return router


def read_page(folder: Path) -> dict[str, tuple[bytes, str]]:
    """Return the files of a folder and its subfolders by name: content and media type."""
    found = sorted(file for file in folder.rglob("*") if file.suffix in MEDIA_TYPES and file.is_file())
    return {file.relative_to(folder).as_posix(): (file.read_bytes(), MEDIA_TYPES[file.suffix]) for file in found}
