"""`cgc search`: a page that finds pictures of a folder by text or by a picture.

Vectors are kept as `cgc embed` writes them, so that the second start embeds what is new alone. Search is exact: the cosines
of the query and of all vectors. The server gives the page, answers and thumbnails of indexed pictures, by their numbers, and
nothing else.
"""
from __future__ import annotations

import functools
import hashlib
import io
import os
import re
import threading
import time
from pathlib import Path
from typing import Any

import numpy

from . import _embed
from ._errors import Error, UsageError

PAGE = Path(__file__).with_name("search.html")
#: The most bytes of a picture that a query uploads.
MAX_UPLOAD = 32 << 20
#: The most results of a query.
MAX_RESULTS = 200
#: The longest side of a thumbnail, in pixels, and how many are kept in memory.
_THUMBNAIL, _THUMBNAILS = 320, 4096


class Index:
    """The vectors of the pictures of a folder that are there now."""

    def __init__(self, model: Any, folder: Path, parts: _embed.Parts):
        self.model = model
        there = dict(_embed.pictures_of([folder]))
        keys, vectors = parts.read()
        if "encode_text" in model.session.entries:
            model.encode_text(["a"])  # The first one is slower.
        rows = [row for row, key in enumerate(keys) if key in there]
        self.keys = [keys[row] for row in rows]
        self._paths = [there[key] for key in self.keys]
        self._vectors = vectors[rows]
        self._thumbnail = functools.lru_cache(_THUMBNAILS)(self._make_thumbnail)

    def nearest(self, query: numpy.ndarray, limit: int) -> list[dict[str, Any]]:
        """The pictures with the greatest cosines, the greatest first."""
        scores = self._vectors @ numpy.asarray(query, numpy.float32).reshape(-1)
        count = min(limit, len(scores))
        best = numpy.argpartition(-scores, count - 1)[:count] if count else numpy.empty(0, numpy.int64)
        best = best[numpy.argsort(-scores[best], kind="stable")]
        return [{"number": int(row), "key": self.keys[row], "score": round(float(scores[row]), 4)} for row in best]

    def vector(self, number: int) -> numpy.ndarray:
        return self._vectors[number]

    def thumbnail(self, number: int) -> bytes | None:
        """A JPEG of a picture of the index; None if its file is gone."""
        try:
            return self._thumbnail(number)
        except Exception:  # Pillow has no common class.
            return None

    def _make_thumbnail(self, number: int) -> bytes:
        from PIL import Image, ImageOps
        with Image.open(self._paths[number]) as picture:
            picture.draft("RGB", (2 * _THUMBNAIL, 2 * _THUMBNAIL))
            small = ImageOps.exif_transpose(picture).convert("RGB")
            small.thumbnail((_THUMBNAIL, _THUMBNAIL))
        content = io.BytesIO()
        small.save(content, "JPEG", quality=85)
        return content.getvalue()


def index_folder(folder: Path, identity: str) -> Path:
    """Where the vectors of a folder are kept, unless a place is given."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    name = hashlib.sha256(f"{folder.resolve()}\0{identity}\0{_embed.VERSION}".encode("utf-8", "surrogateescape")).hexdigest()[:32]
    return cache / "cgc" / "search" / name


def application(index: Index, hosts: list[str]) -> Any:
    """The ASGI application, for requests to these hosts."""
    starlette = _import_starlette()
    lock = threading.Lock()  # One query at a time: a plan takes the whole device anyway.

    def picture(number: str) -> int | None:
        """The number of a picture of the index; None for another text."""
        return int(number) if re.fullmatch("[0-9]{1,9}", number) and int(number) < len(index.keys) else None

    def answer(request: Any, encode: Any) -> Any:
        begin = time.perf_counter()
        try:
            limit = request.query_params.get("limit", "60")
            if not re.fullmatch("[0-9]{1,9}", limit) or not 1 <= int(limit) <= MAX_RESULTS:
                raise UsageError(f"limit is {limit[:20]!r}; give a number from 1 to {MAX_RESULTS}")
            with lock:
                results = index.nearest(encode(), int(limit))
        except Error as error:
            return starlette.JSONResponse({"error": str(error)}, 400)
        return starlette.JSONResponse({"results": results, "pictures": len(index.keys), "identity": index.model.identity,
                                       "model": index.model.card.name,
                                       "milliseconds": round(1000 * (time.perf_counter() - begin), 1)})

    def vector_of(vectors: Any) -> numpy.ndarray:
        if vectors.errors:
            raise UsageError(vectors.errors[0])
        return vectors[0]

    def by_text(request: Any) -> Any:
        def encode() -> numpy.ndarray:
            if text := request.query_params.get("text"):
                return vector_of(index.model.encode_text([text], errors="return"))
            if (number := picture(request.query_params.get("like", ""))) is None:
                raise UsageError("give text=WORDS, or like=NUMBER of a picture of the index")
            return index.vector(number)
        return answer(request, encode)

    async def by_picture(request: Any) -> Any:
        content = bytearray()
        async for block in request.stream():
            if len(content) <= MAX_UPLOAD:  # The rest is read, so that the browser reads the answer, and dropped.
                content += block
        if len(content) > MAX_UPLOAD:
            return starlette.JSONResponse({"error": f"the picture has more than {MAX_UPLOAD >> 20} MiB; give a smaller one"}, 413)
        return await starlette.run_in_threadpool(
            answer, request, lambda: vector_of(index.model.encode_image([bytes(content)], errors="return")))

    def thumbnail(request: Any) -> Any:
        number = picture(request.path_params["number"])
        content = None if number is None else index.thumbnail(number)
        if content is None:
            return starlette.Response("no such picture", 404)
        return starlette.Response(content, media_type="image/jpeg", headers={"Cache-Control": "private, max-age=3600"})

    def page(request: Any) -> Any:
        return starlette.Response(PAGE.read_bytes(), media_type="text/html; charset=utf-8", headers={
            "Content-Security-Policy": "default-src 'none'; img-src 'self' blob:; connect-src 'self'; style-src 'unsafe-inline'; "
                                       "script-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'"})

    return starlette.Starlette(
        routes=[starlette.Route("/", page), starlette.Route("/search", by_text),
                starlette.Route("/search", by_picture, methods=["POST"]),
                starlette.Route("/thumbnail/{number}", thumbnail)],
        middleware=[starlette.Middleware(starlette.TrustedHostMiddleware, allowed_hosts=hosts), starlette.Middleware(_OwnPage)])


class _OwnPage:
    """Refuses what the page of another origin asks for, and tells the browser to give no answer to it. Others may link to the
    page itself."""

    def __init__(self, inner: Any):
        self._inner = inner

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        async def send_closed(message: Any) -> None:
            if message["type"] == "http.response.start":
                message["headers"] += [(b"cross-origin-resource-policy", b"same-origin"), (b"x-content-type-options", b"nosniff")]
            await send(message)

        headers = dict(scope.get("headers", ()))
        origin, host = headers.get(b"origin"), headers.get(b"host")
        is_linked = scope.get("path") == "/" and headers.get(b"sec-fetch-mode") == b"navigate"
        own = headers.get(b"sec-fetch-site", b"none") in (b"same-origin", b"none") or is_linked
        if own and (origin is None or origin.partition(b"://")[2] == host):
            return await self._inner(scope, receive, send_closed)
        asking = "another page" if origin is None else origin.decode("latin-1")
        refusal = _import_starlette().JSONResponse({"error": f"{asking} asks, and this server answers its own page alone"}, 403)
        await refusal(scope, receive, send_closed)


def _import_starlette() -> Any:
    try:
        import types

        import starlette.applications
        import starlette.concurrency
        import starlette.middleware
        import starlette.middleware.trustedhost
        import starlette.responses
        import starlette.routing
        import uvicorn
    except ImportError as error:
        raise UsageError(f"{error.name}, which serves the page, is missing; pip install 'cgc[search]'") from None
    return types.SimpleNamespace(
        Starlette=starlette.applications.Starlette, Middleware=starlette.middleware.Middleware, Route=starlette.routing.Route,
        TrustedHostMiddleware=starlette.middleware.trustedhost.TrustedHostMiddleware, Response=starlette.responses.Response,
        JSONResponse=starlette.responses.JSONResponse, run_in_threadpool=starlette.concurrency.run_in_threadpool, uvicorn=uvicorn)


def serve(index: Index, host: str, port: int, opens: bool) -> None:
    """Serves the page until the process is interrupted. Port 0 is a free one."""
    import socket
    import webbrowser
    uvicorn = _import_starlette().uvicorn
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen()  # From here on connections wait, and are not refused.
    except (OSError, ValueError) as error:  # ValueError: a host that no name can be.
        cause = getattr(error, "strerror", None) or error
        raise UsageError(f"cannot listen on {host} port {port}: {cause}; give another host or port, or port 0") from None
    shown = f"[{host}]" if family == socket.AF_INET6 else host
    url = f"http://{shown}:{listener.getsockname()[1]}/"
    print(f"{len(index.keys)} pictures, model {index.model.identity}: {url} (Ctrl-C ends)", flush=True)
    if opens:
        threading.Timer(0.5, webbrowser.open, [url]).start()
    # A server for all interfaces is reached by any name.
    hosts = ["*"] if host in ("0.0.0.0", "::") else ["127.0.0.1", "localhost", "[::1]", shown]
    config = uvicorn.Config(application(index, hosts), log_level="warning", server_header=False, access_log=False)
    uvicorn.Server(config).run(sockets=[listener])
