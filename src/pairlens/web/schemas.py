"""The JSON that the API takes and sends, in the words of the library."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from pairlens.methods import sampled_method

NonEmpty = Annotated[str, Field(min_length=1, pattern=r"\S", description="A text with something in it.")]
Role = Literal["query", "document"] | None
NamedText = tuple[str, str, str | None]


class Options(BaseModel):
    """How to explain: the options of `Lens.explain`."""

    model_config = ConfigDict(extra="forbid", strict=True)

    model: str | None = Field(None, description="One of GET /api/models; by default the first.")
    method: Literal["banzhaf", "shapley", "integrated-jacobian", "fade", "occlusion", "output"] | None = Field(
        None,
        description="By default banzhaf, or integrated-jacobian where a layer or a reference is given.",
    )
    layer: int | None = Field(
        None,
        ge=-1000,
        le=1000,
        description="0 to the model's last, for integrated-jacobian; -1 is the last.",
    )
    reference: Literal["padding", "mask", "zero"] | None = Field(None, description="For integrated-jacobian.")
    reference_terms: Literal["project", "shift", "keep", "ignore"] | None = Field(
        None,
        description="By default keep for methods that delete units, else project, and shift for an adjusted model.",
    )
    measure: Literal["cosine", "dot"] | None = Field(None, description="By default the model's own.")
    level: Literal["token", "word", "sentence", "zoom"] | None = Field(
        None,
        description="The units of the matrix; zoom gives sentences, and the words of those that matter most. By "
        "default word, and zoom for texts of more than 48 words.",
    )
    tol: float | None = Field(
        None,
        ge=1e-6,
        lt=1,
        allow_inf_nan=False,
        description="The largest relative gap, for methods that integrate. By default 0.001.",
    )
    passes: int | None = Field(None, ge=4, description="Forward passes a text, for banzhaf and shapley.")
    seed: int | None = Field(None, ge=0, lt=2**32, description="Which deletions are tried, for these. By default 0.")
    compounds: int | None = Field(
        None,
        ge=0,
        le=1000,
        description="For banzhaf: rows of their own for up to this many pairs of units that act together.",
    )

    @property
    def named_texts(self) -> list[NamedText]:
        """Every text of the request: its name for messages, the text, its role."""
        raise NotImplementedError

    def keywords(self) -> dict[str, Any]:
        """The keyword arguments of `Lens.explain` and `Lens.decompose`."""
        given = self.model_dump(include={"method", "layer", "reference", "reference_terms", "measure", "level", "tol"})
        method = sampled_method(self.method, passes=self.passes, seed=self.seed, compounds=self.compounds)
        return {**given, "method": method}


class PairOptions(Options):
    """How to explain pairs."""

    roles: list[Role] = Field(
        [None, None],
        min_length=2,
        max_length=2,
        description="The prompt and route of each side, where there are any.",
    )
    picture: bool = Field(False, description="Also what the interactive picture shows, as `picture`.")


class ExplainRequest(PairOptions):
    """Two texts to explain."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"a": "The coffee here is not good.", "b": "This coffee is bad."},
                {"a": "It rains.", "b": "It is raining.", "layer": 3, "level": "token"},
            ]
        }
    )

    a: NonEmpty
    b: NonEmpty

    @property
    def named_texts(self) -> list[NamedText]:
        """The two texts."""
        return [("a", self.a, self.roles[0]), ("b", self.b, self.roles[1])]


class RankRequest(PairOptions):
    """A query and passages to rank and explain."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "query": "how long does the battery last",
                    "passages": ["It runs for nine hours on one charge.", "The screen is bright."],
                }
            ]
        }
    )

    query: NonEmpty
    passages: list[NonEmpty] = Field(min_length=1)

    @property
    def named_texts(self) -> list[NamedText]:
        """The query, then the passages."""
        passages = [(f"passage {i}", text, self.roles[1]) for i, text in enumerate(self.passages, start=1)]
        return [("query", self.query, self.roles[0]), *passages]


class DecomposeRequest(Options):
    """Texts to decompose."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"texts": ["The coffee here is not good."]}]})

    texts: list[NonEmpty] = Field(min_length=1)
    role: Role = Field(None, description="The prompt and route, where the model has any.")

    @property
    def named_texts(self) -> list[NamedText]:
        """The texts."""
        return [(f"text {i}", text, self.role) for i, text in enumerate(self.texts, start=1)]


# Responses. These describe what is sent; the server does not check its own responses against them.

Numbers = list[float]
UnitFields = Annotated[
    list[str | int], Field(min_length=4, max_length=4, description="Its text, where it begins and ends, and its kind.")
]


class ExplanationDocument(BaseModel):
    """What `pairlens.Explanation.load` reads: score = base + Σ effects_a + Σ effects_b + Σ matrix + gap."""

    format: Literal["pairlens.explanation"]
    version: int
    text_a: str
    text_b: str
    score: float
    matrix: list[Numbers] = Field(description="What each unit of a and each of b contribute together.")
    units_a: list[UnitFields]
    units_b: list[UnitFields]
    tokens_a: list[str]
    tokens_b: list[str]
    base: float
    effects_a: Numbers
    effects_b: Numbers
    gap: float
    gap_a: float
    gap_b: float
    entry_error: list[Numbers]
    truncated_a: bool
    truncated_b: bool
    unknown_a: list[str] = Field(description="Words of a that the tokenizer does not know.")
    unknown_b: list[str]
    settings: dict[str, Any]
    picture: dict[str, Any] | None = Field(None, description="Where it was asked for.")


class RankedPassage(BaseModel):
    """A passage, and why it scores as it does."""

    rank: int = Field(description="From 1, the best.")
    passage: int = Field(description="Its place in the request, from 0.")
    score: float
    explanation: ExplanationDocument


class RankResponse(BaseModel):
    """Passages, best first."""

    hits: list[RankedPassage] = Field(min_length=1)
    picture: dict[str, Any] | None = Field(None, description="All hits in one picture, where it was asked for.")


class ContributionsDocument(BaseModel):
    """What `pairlens.Contributions.load` reads: embedding = reference + Σ values, to within gap."""

    model_config = ConfigDict(extra="allow")

    format: Literal["pairlens.contributions"]
    version: int
    text: str
    units: list[UnitFields]
    tokens: list[str]
    values: list[Numbers] = Field(description="One vector a unit.")
    error: Numbers
    reference: Numbers
    embedding: Numbers
    output: Numbers
    gap: float
    truncated: bool
    unknown: list[str]
    settings: dict[str, Any]


class DecomposeResponse(BaseModel):
    """The contributions of each text."""

    contributions: list[ContributionsDocument]


class ModelInfo(BaseModel):
    """A model that can be asked for."""

    name: str
    layers: int = Field(description="Layers go from 0 to this.")
    pooling: str
    measure: str
    adjusted: bool
    roles: bool = Field(description="Whether each text must be given a role.")


class ModelsResponse(BaseModel):
    """What can be asked for."""

    version: str = Field(description="The version of pairlens.")
    models: list[ModelInfo]
    methods: list[str]
    limits: dict[str, int | float] = Field(description="The most that one request may ask for.")


class HealthResponse(BaseModel):
    """The state of the server: numbers only, nothing about texts."""

    status: Literal["ok", "draining"]
    running: int
    waiting: int
    finished: int
    cancelled: int
    refused: int


class Problem(BaseModel):
    """Why there is no result."""

    error: str = Field(description="What is wrong and what to do.")
