"""The routes: the page's files, the JSON API, and how its answers are sent."""

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
from pairlens.web.responses import PRIVATE, STREAM, answer, finished
from pairlens.web.scheduler import Work, asks_for_roles
from pairlens.web.security import Guard, fault, problem

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


def build(lenses: Mapping[str, Lens], *, hosts: Collection[str], limits: Limits) -> tuple[ASGIApp, Work]:
    """The application, and the work that it gives out.

    Args:
        lenses: the models that can be asked for, the default first.
        hosts: the names that the server answers to.
        limits: the most that a request may ask for.
    """
    work = Work(lenses, limits)
    # FastAPI's own documentation pages load scripts from elsewhere.
    api = FastAPI(
        title="pairlens", version=pairlens.__version__, description=DESCRIPTION, docs_url=None, redoc_url=None
    )
    _add_errors(api)
    _add_page(api)
    _add_state(api, work)
    _add_calculations(api, work)
    _describe_choices(api, work)
    return Guard(api, hosts, limits), work


def _add_errors(api: FastAPI) -> None:
    """Every error has one form, and says no more than the one who asked has sent."""

    @api.exception_handler(RequestValidationError)
    async def _invalid(request: Request, error: RequestValidationError) -> Response:
        found = error.errors()
        if any(one["type"] == "json_invalid" for one in found):
            return problem(Refusal(400, "the request is not JSON."))
        named = [f"{'.'.join(map(str, one['loc'][1:])) or 'the request'}: {one['msg']}" for one in found[:5]]
        return problem(Refusal(422, "; ".join(named)))

    @api.exception_handler(HTTPException)
    async def _http(request: Request, error: HTTPException) -> Response:
        answer = problem(Refusal(error.status_code, f"{error.detail}."))
        answer.headers.update(error.headers or {})
        return answer

    @api.exception_handler(Refusal)
    async def _refused(request: Request, error: Refusal) -> Response:
        return problem(error)

    @api.exception_handler(Exception)
    async def _fault(request: Request, error: Exception) -> Response:
        return problem(fault(error))

    @api.exception_handler(PairlensError)
    async def _cannot(request: Request, error: PairlensError) -> Response:
        return problem(Refusal(422, str(error)))


def _add_page(api: FastAPI) -> None:
    """The page's files, and the picture's."""
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


def _add_state(api: FastAPI, work: Work) -> None:
    """What there is, and how the server is."""
    known = [_describe(name, lens) for name, lens in work.lenses.items()]

    @api.get("/api/models", response_model=schemas.Models, responses={400: REFUSALS[400]})
    async def models() -> schemas.Models:
        """What can be asked for: models, methods, limits."""
        return schemas.Models(
            version=pairlens.__version__, models=known, methods=list(METHODS), limits=asdict(work.limits)
        )

    @api.get("/healthz", response_model=schemas.Health, responses={400: REFUSALS[400]})
    async def healthz() -> schemas.Health:
        """How the server is."""
        return schemas.Health(
            status="draining" if work.draining else "ok",
            running=work.running,
            waiting=work.waiting,
            finished=work.finished,
            cancelled=work.cancelled,
            refused=work.refused,
        )


def _describe_choices(api: FastAPI, work: Work) -> None:
    """Say in the API's description which models there are here, and how many layers they have."""
    names, layers = list(work.lenses), max(_describe(name, lens).layers for name, lens in work.lenses.items())
    for schema in api.openapi()["components"]["schemas"].values():
        fields = schema.get("properties", {})
        if {"model", "layer"} <= set(fields):
            fields["model"]["anyOf"][0]["enum"] = names
            fields["layer"]["anyOf"][0] |= {"minimum": -layers - 1, "maximum": layers}


def _describe(name: str, lens: Lens) -> schemas.Model:
    encoder, asks = lens.encoder, asks_for_roles(lens)
    role = "document" if asks else None
    return schemas.Model(
        name=name,
        layers=encoder.layers(role),
        pooling=encoder.pooling(role),
        measure=lens.measure,
        adjusted=lens.adjusted,
        roles=asks,
    )


def _add_calculations(api: FastAPI, work: Work) -> None:
    """What is computed. The answers are written by the library; the schemas only describe them."""

    def documented(model: type) -> dict[str, Any]:
        streamed = {"content": {STREAM: {"schema": {"type": "string"}}}}
        return {"response_model": None, "responses": {**REFUSALS, 200: {"model": model, **streamed}}}

    @api.post("/api/explain", **documented(schemas.Document))
    async def explain(asked: schemas.Explain, request: Request) -> Response:
        """Why the model finds two texts as similar as it does: what `Explanation.load` reads."""
        return await answer(request, work, requests.Explaining(asked))

    @api.post("/api/rank", **documented(schemas.Ranking))
    async def rank(asked: schemas.Rank, request: Request) -> Response:
        """One query against several passages, best first, each explained; each text is decomposed once."""
        return await answer(request, work, requests.Ranking(asked))

    @api.post("/api/decompose", **documented(schemas.Decomposition))
    async def decompose(asked: schemas.Decompose, request: Request) -> Response:
        """What each unit of a text contributes to its embedding: what `Contributions.load` reads."""
        return await answer(request, work, requests.Decomposing(asked))

    pictures = {kind: {"schema": {"type": "string", "format": "binary"}} for kind in PICTURES.values()}
    wanted = {"schema": {"anyOf": [{"$ref": f"#/components/schemas/{name}"} for name in ("Document", "Ranking")]}}

    @api.post(
        "/api/render",
        response_class=Response,
        responses={**REFUSALS, 200: {"description": "A file.", "content": pictures}},
        openapi_extra={"requestBody": {"required": True, "content": {"application/json": wanted}}},
    )
    async def render(
        request: Request, kind: Annotated[Literal["html", "png"], Query(alias="format")] = "html"
    ) -> Response:
        """A file to keep of what /api/explain or /api/rank gave: the interactive picture, or a plot."""
        body = await request.body()
        draw = partial(requests.render, body, kind, work.limits)
        _, drawn = work.begin(lambda job: work.run(job, draw, quick=True))
        headers = {"Content-Disposition": f'attachment; filename="pairlens.{kind}"', **PRIVATE}
        return Response(await finished(request, drawn), headers=headers, media_type=PICTURES[kind])
