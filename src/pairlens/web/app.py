"""The routes: the page's files and the JSON API."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import asdict
from functools import partial
from importlib.resources import files
from typing import Annotated, Any, Literal

from fastapi import FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp

import pairlens
from pairlens.errors import PairlensError
from pairlens.lens import Lens
from pairlens.methods import METHODS
from pairlens.render import html
from pairlens.web import requests, schemas
from pairlens.web.limits import Limits, Refusal
from pairlens.web.responses import PRIVATE, STREAM, respond, result
from pairlens.web.scheduler import Scheduler
from pairlens.web.security import Guard, as_refusal, problem

REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": schemas.Problem, "description": text}
    for status, text in {
        400: "Not JSON, or asked for by another name.",
        403: "Asked for from another page.",
        408: "The request took too long to arrive.",
        413: "The request is too large.",
        415: "The request is not JSON.",
        422: "A field, a text or an option cannot be used.",
        503: "Too many requests wait already, or the server is stopping.",
        504: "It took too long.",
    }.items()
}
DESCRIPTION = f"""Why are these two texts this similar? The page's own API, in the words of the library.

Ask for `Accept: {STREAM}` to see how far a long calculation is: the answer then comes as lines, `{{"progress": 0.4}}`
any number of times and at last `{{"result": …}}`, which is the usual answer, or `{{"error": …, "status": …}}`."""
PICTURES = {"html": "text/html", "png": "image/png"}
KINDS = {"html": "text/html", "js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
PAGE = ("index.html", "page.js", "state.js", "ask.js", "examples.js", "page.css", "icon.svg")
PICTURE = ("picture.js", "picture.css")


def build(lenses: Mapping[str, Lens], *, hosts: Collection[str], limits: Limits) -> tuple[ASGIApp, Scheduler]:
    """The application, and the scheduler of its calculations.

    Args:
        lenses: the models that can be asked for, the default first.
        hosts: the names that the server answers to.
        limits: the most that a request may ask for.
    """
    scheduler = Scheduler(lenses, limits)
    # FastAPI's documentation pages load scripts from other servers.
    api = FastAPI(
        title="pairlens", version=pairlens.__version__, description=DESCRIPTION, docs_url=None, redoc_url=None
    )
    models = [_describe(name, lens) for name, lens in lenses.items()]
    _add_errors(api)
    _add_page(api)
    _add_state(api, scheduler, models)
    _add_calculations(api, scheduler)
    _describe_choices(api, models)
    return Guard(api, hosts, limits), scheduler


def _add_errors(api: FastAPI) -> None:
    """Give every error the same form. It quotes nothing but the request itself."""

    async def invalid(request: Request, error: Any) -> Response:
        errors = error.errors()
        if any(each["type"] == "json_invalid" for each in errors):
            return problem(Refusal(400, "the request is not JSON."))
        lines = [f"{'.'.join(map(str, each['loc'][1:])) or 'the request'}: {each['msg']}" for each in errors[:5]]
        return problem(Refusal(422, "; ".join(lines)))

    async def unknown(request: Request, error: Any) -> Response:
        response = problem(Refusal(error.status_code, f"{error.detail}."))
        response.headers.update(error.headers or {})
        return response

    async def refused(request: Request, error: Exception) -> Response:
        return problem(as_refusal(error))

    api.add_exception_handler(RequestValidationError, invalid)
    api.add_exception_handler(HTTPException, unknown)
    for kind in (Refusal, PairlensError, Exception):
        api.add_exception_handler(kind, refused)


def _add_page(api: FastAPI) -> None:
    """Routes of the page's files and of the picture's."""
    folder = files("pairlens.web").joinpath("page")
    content = {name: folder.joinpath(name).read_text(encoding="utf-8") for name in PAGE}
    content |= {name: html.asset(name) for name in PICTURE}

    def add(path: str, text: str, kind: str) -> None:
        tag = f'"{hashlib.sha256(text.encode()).hexdigest()[:16]}"'

        @api.get(path, include_in_schema=False)
        async def _file(request: Request) -> Response:
            headers = {"ETag": tag, "Cache-Control": "no-cache"}
            if request.headers.get("if-none-match") == tag:
                return Response(status_code=304, headers=headers)
            return Response(text, headers=headers, media_type=kind)

    for name, text in content.items():
        add("/" if name == "index.html" else f"/{name}", text, KINDS[name.rsplit(".", 1)[-1]])


def _add_state(api: FastAPI, scheduler: Scheduler, known: list[schemas.ModelInfo]) -> None:
    """Routes that tell what can be asked for, and the state of the server."""

    @api.get("/api/models", response_model=schemas.ModelsResponse, responses={400: REFUSALS[400]})
    async def models() -> schemas.ModelsResponse:
        """What can be asked for: models, methods, limits."""
        return schemas.ModelsResponse(
            version=pairlens.__version__, models=known, methods=list(METHODS), limits=asdict(scheduler.limits)
        )

    @api.get("/healthz", response_model=schemas.HealthResponse, responses={400: REFUSALS[400]})
    async def healthz() -> schemas.HealthResponse:
        """The state of the server."""
        return schemas.HealthResponse(
            status="draining" if scheduler.draining else "ok",
            running=scheduler.running,
            waiting=scheduler.waiting,
            finished=scheduler.finished,
            cancelled=scheduler.cancelled,
            refused=scheduler.refused,
        )


def _describe_choices(api: FastAPI, models: list[schemas.ModelInfo]) -> None:
    """Name in the API's description the models of this server, and the layers that they have."""
    names, layers = [model.name for model in models], max(model.layers for model in models)
    for schema in api.openapi()["components"]["schemas"].values():
        fields = schema.get("properties", {})
        if {"model", "layer"} <= set(fields):
            fields["model"]["anyOf"][0]["enum"] = names
            fields["layer"]["anyOf"][0] |= {"minimum": -layers - 1, "maximum": layers}


def _describe(name: str, lens: Lens) -> schemas.ModelInfo:
    roles = requests.needs_roles(lens)
    role = "document" if roles else None
    return schemas.ModelInfo(
        name=name,
        layers=lens.encoder.layers(role),
        pooling=lens.encoder.pooling(role),
        measure=lens.measure,
        adjusted=lens.adjusted,
        roles=roles,
    )


def _add_calculations(api: FastAPI, scheduler: Scheduler) -> None:
    """Routes that compute. The library writes the responses; the schemas only describe them."""

    def documented(model: type) -> dict[str, Any]:
        streamed = {"content": {STREAM: {"schema": {"type": "string"}}}}
        return {"response_model": None, "responses": {**REFUSALS, 200: {"model": model, **streamed}}}

    @api.post("/api/explain", **documented(schemas.ExplanationDocument))
    async def explain(body: schemas.ExplainRequest, request: Request) -> Response:
        """Why the model finds two texts as similar as it does: what `Explanation.load` reads."""
        return await respond(request, scheduler, body, requests.explain)

    @api.post("/api/rank", **documented(schemas.RankResponse))
    async def rank(body: schemas.RankRequest, request: Request) -> Response:
        """One query against several passages, best first, each explained; each text is decomposed once."""
        return await respond(request, scheduler, body, requests.rank)

    @api.post("/api/decompose", **documented(schemas.DecomposeResponse))
    async def decompose(body: schemas.DecomposeRequest, request: Request) -> Response:
        """What each unit of a text contributes to its embedding: what `Contributions.load` reads."""
        return await respond(request, scheduler, body, requests.decompose)

    pictures = {kind: {"schema": {"type": "string", "format": "binary"}} for kind in PICTURES.values()}
    results = (schemas.ExplanationDocument, schemas.RankResponse)
    taken = {"schema": {"anyOf": [{"$ref": f"#/components/schemas/{model.__name__}"} for model in results]}}

    @api.post(
        "/api/render",
        response_class=Response,
        responses={**REFUSALS, 200: {"description": "A file.", "content": pictures}},
        openapi_extra={"requestBody": {"required": True, "content": {"application/json": taken}}},
    )
    async def render(
        request: Request, kind: Annotated[Literal["html", "png"], Query(alias="format")] = "html"
    ) -> Response:
        """A file of what /api/explain or /api/rank gave: the interactive picture, or a plot."""
        drawing = scheduler.start(partial(requests.render, await request.body(), kind, scheduler.limits))
        headers = {"Content-Disposition": f'attachment; filename="pairlens.{kind}"', **PRIVATE}
        return Response(await result(request, drawing), headers=headers, media_type=PICTURES[kind])
