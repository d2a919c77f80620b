"""Ray: `cgc embed --ray` on the machines of a cluster, and deployment(), an application of Ray Serve for a model folder."""
from __future__ import annotations

import collections
import contextlib
import functools
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy

from . import _embed, _folder
from ._errors import DeviceError, Error, UsageError
from .preprocess import Preprocess

__all__ = ["deployment"]
#: Parts queued at each actor, so that it never idles.
_AHEAD = 2
#: How often a part is given to an actor again after its process has died.
_RETRIES = 3


def embed(inputs: Iterable[_embed.Input], parts: _embed.Parts, folder: str, kind: str, normalize: bool, address: str,
          options: dict[str, Any], progress: Callable[[], None] = lambda: None) -> set[str]:
    """_embed.embed() by actors: one for each GPU of the cluster, whose pictures any of its processors preprocess, or, without
    GPUs, one for two processors. Workers read the model folder and the pictures at the same paths; this process writes the
    parts. An actor whose process dies is started again, with the parts that it had. DeviceError if it dies again and again."""
    ray = _import_ray()
    with _connected(ray, address):
        resources = ray.cluster_resources()
        gpus, processors = int(resources.get("GPU", 0)), int(resources.get("CPU", 1))
        apart = kind == "image" and gpus and processors > gpus
        actor = ray.remote(num_gpus=1 if gpus else 0, num_cpus=1 if gpus else min(2, processors), max_restarts=-1,
                           max_task_retries=_RETRIES)(_Encoder)
        actors = [actor.remote(folder, kind, normalize, options, apart) for _ in range(gpus or max(1, processors // 2))]
        preprocess = ray.remote(num_cpus=1, max_retries=_RETRIES)(_preprocess)
        waiting: dict[Any, list[_embed.Versioned]] = {}
        free = collections.deque(actors * _AHEAD)
        owner: dict[Any, Any] = {}

        def finish_one() -> None:
            (ready,), _ = ray.wait(list(waiting), num_returns=1)
            some = waiting.pop(ready)
            free.append(owner.pop(ready))
            try:
                vectors, errors = ray.get(ready)
            except ray.exceptions.RayTaskError as error:
                cause = error.cause
                while isinstance(cause, ray.exceptions.RayTaskError):  # Of _preprocess().
                    cause = cause.cause
                raise cause if isinstance(cause, Error) else Error(f"the process that embeds failed: {cause!r}") from None
            except ray.exceptions.RayActorError as error:
                raise DeviceError(f"the process that embeds died {_RETRIES + 1} times at the inputs from {some[0][0]} to {some[-1][0]}; "
                                  f"its log is in Ray's ({error})") from None
            except ray.exceptions.RayError as error:
                raise DeviceError(f"Ray failed ({error}); run again to go on") from None
            parts.add(some, vectors, errors)
            progress()

        def submit(some: list[_embed.Versioned]) -> None:
            if not free:
                finish_one()
            chosen = free.popleft()
            values = [Path(os.path.abspath(value)) if isinstance(value, Path) else value for _, value, _ in some]
            if apart:
                values = preprocess.remote(folder, values)
            task = chosen.encode.remote(values)
            waiting[task], owner[task] = some if kind == "text" else [(key, None, version) for key, _, version in some], chosen

        keys = _embed.for_each_part(inputs, parts, submit)
        while waiting:
            finish_one()
        parts.drop_old()
        return keys


class _Encoder:
    """An actor, which holds the model. It takes what _preprocess() gives, or inputs."""

    def __init__(self, folder: str, kind: str, normalize: bool, options: dict[str, Any], is_preprocessed: bool):
        self._folder, self._kind, self._normalize, self._options = folder, kind, normalize, options
        self._is_preprocessed = is_preprocessed
        self._encode: Any = None

    def _load(self) -> Any:
        """The function of the model. Not in __init__(): its errors would reach the caller as a process that died."""
        from ._session import load
        model = load(self._folder, **self._options)
        if self._is_preprocessed:
            model.preprocess = model.preprocess.of_results()
        return functools.partial(getattr(model, f"encode_{self._kind}"), normalize=self._normalize, errors="return")

    def encode(self, values: Any) -> tuple[numpy.ndarray, dict[int, str]]:
        self._encode = self._encode or self._load()
        if self._is_preprocessed:
            pixels, errors = values
            vectors = self._encode(list(pixels))
            vectors[list(errors)] = numpy.nan
            return numpy.asarray(vectors), {**vectors.errors, **errors}
        vectors = self._encode(values)
        return numpy.asarray(vectors), vectors.errors


def _preprocess(folder: str, values: list[Any]) -> tuple[numpy.ndarray, dict[int, str]]:
    """Pictures as uint8 in the size of the model, which Preprocess.of_results() takes."""
    images = _preprocess_of(folder)(values, dtype="uint8", threads=1)
    return images.pixels, images.reasons


@functools.cache
def _preprocess_of(folder: str) -> Preprocess:
    return Preprocess.from_json(_folder.read_json(Path(folder, _folder.PREPROCESS)))


def deployment(folder: str, *, batch_wait: float = 0.002, options: dict[str, Any] | None = None, **settings: Any) -> Any:
    """An application of Ray Serve, for `serve.run(cgc.ray.deployment("vit-b-32/"))`.

    A request is POST /image with the bytes of a picture, or POST /text with UTF-8. The answer is the vector: JSON with
    `vector` and `identity`, or the bytes of float32 for `Accept: application/octet-stream`. A bad input is status 400 with
    `error`. Requests that come within `batch_wait` seconds share a batch, of at most the largest bucket.

    options: those of cgc.load(). settings: those of ray.serve.deployment(), such as num_replicas and ray_actor_options
        [one GPU, unless options has executor="reference"].
    Start Ray with RAY_SERVE_ENABLE_HA_PROXY=1 and RAY_SERVE_THROUGHPUT_OPTIMIZED=1: the default proxy answers a seventh of
    the requests (docs/embeddings.md).
    """
    _import_ray()
    from ray import serve
    options = options or {}
    settings.setdefault("ray_actor_options", {} if options.get("executor") == "reference" else {"num_gpus": 1})
    settings.setdefault("max_ongoing_requests", 256)

    class Embedder:
        def __init__(self) -> None:
            from ._session import load
            self._model = load(folder, **options)
            most = max(bucket.batch or 1 for entry in self._model.session.entries.values() for bucket in entry.buckets)
            for method in (self._image, self._text):
                method.set_max_batch_size(most)
                method.set_batch_wait_timeout_s(batch_wait)

        @serve.batch(max_batch_size=64, batch_wait_timeout_s=0.002)
        async def _image(self, pictures: list[bytes]) -> list[Any]:
            return self._answers(self._model.encode_image(pictures, errors="return"))

        @serve.batch(max_batch_size=64, batch_wait_timeout_s=0.002)
        async def _text(self, texts: list[str]) -> list[Any]:
            return self._answers(self._model.encode_text(texts, errors="return"))

        def _answers(self, vectors: Any) -> list[Any]:
            return [vectors.errors.get(index, row) for index, row in enumerate(numpy.asarray(vectors))]

        async def __call__(self, request: Any) -> Any:
            from starlette.responses import JSONResponse, Response
            kind, body = request.url.path.rsplit("/", 1)[-1], await request.body()
            if kind not in ("image", "text") or request.method != "POST":
                return JSONResponse({"error": "POST a picture to /image or a text to /text"}, 404)
            try:
                answer = await (self._image(body) if kind == "image" else self._text(body.decode()))
            except UnicodeDecodeError:
                answer = "the text is not UTF-8"
            if isinstance(answer, str):
                return JSONResponse({"error": answer}, 400)
            if request.headers.get("accept") == "application/octet-stream":
                return Response(answer.tobytes(), media_type="application/octet-stream",
                                headers={"X-Cgc-Identity": self._model.identity})
            return JSONResponse({"vector": answer.tolist(), "identity": self._model.identity})

    return serve.deployment(**settings)(Embedder).bind()


def _import_ray() -> Any:
    try:
        import ray
    except ImportError:
        raise UsageError("ray is missing; pip install 'cgc[ray]'") from None
    return ray


@contextlib.contextmanager
def _connected(ray: Any, address: str) -> Iterator[None]:
    """A connection to the cluster at the address; of "auto", to the one that runs here, or to a new one of this machine alone."""
    # Workers import what this process imports.
    settings = {"log_to_driver": False, "runtime_env": {"env_vars": {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}}}
    try:
        ray.init(address=address, **settings)
    except (ConnectionError, ValueError) as error:  # ValueError: no address.
        if address != "auto":
            raise DeviceError(f"no Ray cluster answers at {address} ({error}); start one there") from None
        ray.init(include_dashboard=False, _node_ip_address="127.0.0.1", **settings)
    try:
        yield
    finally:
        ray.shutdown()
