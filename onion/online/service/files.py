"""The page at ``/``, if there is one in the folder ``page``."""

# Annotations are no strings here: see commands.py.
from pathlib import Path
from typing import TYPE_CHECKING

from onion.online.desk import Refused

if TYPE_CHECKING:
    from fastapi import APIRouter

PAGE = Path(__file__).parent / "page"
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
}


def files(folder: Path = PAGE) -> "APIRouter":
    """Return the routes ``/`` and ``/static``.

    The files are read here, once: what a call names is looked up among them, and never on the disk.
    """
    from fastapi import APIRouter
    from starlette.responses import Response

    router, page = APIRouter(), read(folder)

    def send(name: str) -> Response:
        if name not in page:
            raise Refused("There is no such file.", 404)
        content, kind = page[name]
        return Response(content, media_type=kind)

    @router.get("/")
    async def index() -> Response:
        return send("index.html")

    @router.get("/static/{name:path}")
    async def static(name: str) -> Response:
        return send(name)

    return router


def read(folder: Path) -> dict[str, tuple[bytes, str]]:
    """Return the files of a folder and those further in, by name: content and media type."""
    found = sorted(file for file in folder.rglob("*") if file.suffix in TYPES and file.is_file())
    return {file.relative_to(folder).as_posix(): (file.read_bytes(), TYPES[file.suffix]) for file in found}
