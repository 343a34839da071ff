"""Lens: the one entry point."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Unpack

import torch

from pairlens.attribution import similarity
from pairlens.attribution.contrast import Contrast
from pairlens.attribution.contributions import Contributions, deletes
from pairlens.attribution.decomposer import Decomposer, Job
from pairlens.attribution.explanation import Explanation
from pairlens.attribution.options import ExplainOptions, Options, resolve_treatment
from pairlens.attribution.similarity import MEASURES
from pairlens.attribution.stream import (
    Roles,
    both_roles,
    check_given,
    stream_contributions,
    stream_explanations,
    texts_in,
)
from pairlens.autodiff import PRECISIONS
from pairlens.errors import ModelError, choose
from pairlens.methods import Method
from pairlens.model import EmbeddingFunction, Encoder
from pairlens.quadrature import Rule
from pairlens.shapes import Array
from pairlens.text import Level, Unit

DTYPES = {"float32": torch.float32, "float64": torch.float64}


class Lens:
    """An embedding model whose similarity scores can be explained.

    Args:
        model: a hub id, a folder, or a SentenceTransformer, which is used as it is and left as it is. None is
            all-MiniLM-L6-v2, from the extra `offline` where that is installed, else from the hub.
        device: where to compute; by default where the model is.
        dtype: "float32", or "float64" for gaps below 1e-6. Half-precision weights are computed in float32.
        precision: how exactly integrated-jacobian multiplies derivatives: "highest" as dtype says, "high" with TF32 on
            CUDA devices, "bf16" with 8 bits. With "bf16", texts with deletions are computed in bfloat16 too: 2.4 times
            faster on processors that have it. Scores and embeddings are always computed as dtype says. The gap and the
            standard errors hold what it costs (docs/speed.md).
        strict: raise on texts longer than the model takes, instead of warning.

    Attributes:
        encoder: the model, opened up: what studies, the corpus and the page compute with.
        strict: as given.

    Example:
        >>> lens = Lens()
        >>> e = lens.explain("The coffee is bad.", "This coffee is bad.", level="word")
        >>> bool(abs(e.base + e.effects_a.sum() + e.effects_b.sum() + e.matrix.sum() + e.gap - e.score) < 1e-12)
        True
        >>> [(pair.a.text, pair.b.text) for pair in e.top(1)]
        [('coffee', 'coffee')]
    """

    def __init__(
        self,
        model: Any = None,
        device: Any = None,
        *,
        dtype: str | torch.dtype = "float32",
        precision: str = "highest",
        strict: bool = False,
    ) -> None:
        name = str(dtype).removeprefix("torch.")
        self.encoder: Encoder | EmbeddingFunction = Encoder(
            model,
            device=device,
            dtype=DTYPES[choose("dtype", name, DTYPES)],
            matmul=choose("precision", precision, PRECISIONS),
        )
        self.strict = strict

    @classmethod
    def from_function(
        cls, embed: Callable[[list[str]], Any], *, name: str = "function", empty: str = "", measure: str = "cosine"
    ) -> Lens:
        """A lens on a black box: an API, an ONNX session, any function from texts to vectors.

        It is explained by what deletions do to its vectors, with "banzhaf", "shapley" or "occlusion", at word or
        sentence level or by spans. Each distinct text is asked for once, up to 256 at a time.

        Args:
            embed: takes a list of texts and returns one vector each: a list of lists, an array or a tensor.
            name: what to call it in results.
            empty: the text that stands for "nothing left"; another one where the function refuses "".
            measure: how its vectors are compared, "cosine" or "dot".

        Example:
            >>> def count(texts):
            ...     return [[text.count("a") + 1, text.count("b") + 1] for text in texts]
            >>> e = Lens.from_function(count, name="letters").explain("an apple", "a bean")
            >>> [unit.text for unit in e.units_a], bool(abs(e.gap) < 1e-12)
            (['an', 'apple'], True)
        """
        lens = cls.__new__(cls)
        lens.encoder = EmbeddingFunction(embed, name=name, empty=empty, measure=choose("measure", measure, MEASURES))
        lens.strict = False
        return lens

    def fork(self) -> Lens:
        """Another lens on the same weights, for another thread: one lens explains one thing at a time."""
        other = copy.copy(self)
        other.encoder = self.encoder.fork()
        return other

    @property
    def name(self) -> str:
        """The model's name."""
        return self.encoder.name

    @property
    def layers(self) -> int:
        """L: layers go from 0, the embedding layer's output, to L, the last layer's."""
        return self.encoder.layers()

    @property
    def pooling(self) -> str:
        """How the model makes one vector of its tokens' vectors: "mean", "cls" and so on."""
        return self.encoder.pooling()

    @property
    def measure(self) -> str:
        """The model's own similarity measure."""
        return self.encoder.measure

    @property
    def adjusted(self) -> bool:
        """Whether the model subtracts its reference's embedding, as the papers' adjusted models do."""
        return self.encoder.adjusted

    def __repr__(self) -> str:
        if not self.encoder.has_layers:
            return f"Lens.from_function({self.name!r}, measure={self.measure!r})"
        try:
            shape = f"layers={self.layers}, pooling={self.pooling!r}, "
        except ModelError:  # a router that must be told the role
            shape = ""
        return f"Lens({self.name!r}, {shape}measure={self.measure!r})"

    def explain(
        self,
        a: str,
        b: str,
        *,
        method: str | Method | None = None,
        layer: int | None = None,
        reference: str | None = None,
        reference_terms: str | None = None,
        measure: str | None = None,
        level: Level | tuple[Level, Level] | None = None,
        rule: Rule | None = None,
        tol: float | None = None,
        roles: Roles = (None, None),
        prompt: str | tuple[str | None, str | None] | None = None,
        prompt_name: str | tuple[str | None, str | None] | None = None,
    ) -> Explanation:
        """Why the model finds two texts as similar as it does.

        Args:
            a: one text.
            b: the other.
            method: "banzhaf", "shapley", "fade", "integrated-jacobian", "occlusion", "output", or an object such as
                `Banzhaf(passes=100)` or `IntegratedJacobian(layer=3)`. By default `Banzhaf()`, which predicts best what
                deleting units does (`pairlens study faithfulness`); "integrated-jacobian" where a layer, reference or
                rule is given, and for adjusted models; static embeddings need no method.
            layer: 0 to L, for integrated-jacobian; negative ones count from the end. Not beside a method object.
            reference: "padding" (default), "mask" or "zero", likewise.
            reference_terms: "keep" (default for methods that delete units), "project" (default for the others), "shift"
                (their default for adjusted models) or "ignore".
            measure: "cosine" or "dot"; the model's own by default.
            level: "word", "token" (not for a black box), "sentence", "zoom" or character spans `[(0, 5), (6, 20)]`; a
                pair gives each text its own. "zoom" gives sentences, and the words of those that matter most for the
                score. By default "word", and "zoom" for texts of more than 48 words.
            rule: `Adaptive(tol)`, `GaussLegendre(n)` or `Riemann(n)`, for methods that integrate; `Adaptive(tol)` by
                default.
            tol: the largest relative gap of either text, likewise, 1e-3 by default; of both together for adjusted
                models, so that the matrix sums to the score within tol. A rule given has its own.
            roles: "query" or "document" for each text, to apply the model's prompts and routes.
            prompt: a text to put before both texts, as `SentenceTransformer.encode` does; a pair gives each its own. A
                prompt is one unit, "(prompt)", before the words: their indices are one higher. It is never deleted.
            prompt_name: one of the model's prompts, likewise.

        Raises:
            InputError: a text or an option cannot be used.
            NotConverged: tol was not reached.
        """
        resolved = self.resolve(
            method=method,
            layer=layer,
            reference=reference,
            reference_terms=reference_terms,
            measure=measure,
            level=level,
            rule=rule,
            tol=tol,
            prompt=prompt,
            prompt_name=prompt_name,
        )
        return next(stream_explanations(self._decomposer(resolved), [(a, b)], both_roles(roles), resolved))

    def explain_many(
        self,
        pairs: Iterable[tuple[str, str]],
        *,
        roles: Roles = (None, None),
        progress: bool = True,
        window: int = 256,
        **options: Unpack[ExplainOptions],
    ) -> Iterator[Explanation]:
        """Explain many pairs, lazily and in order; each distinct text is decomposed once.

        Errors say which pair they are about: pairs[0] is the first.

        Args:
            pairs: the pairs of texts; any iterable, read as far as needed.
            roles: "query" or "document" for the first and the second text of each pair.
            progress: show a progress bar.
            window: how many pairs are read ahead, to decompose texts of one length together. With 1, each pair is
                explained before the next is read.
            options: as for `explain`.
        """
        resolved = self.resolve(**options)
        decomposer, given = self._decomposer(resolved), both_roles(roles)
        return stream_explanations(decomposer, pairs, given, resolved, window, progress, where="pairs[{}]")

    def decompose(
        self,
        texts: Iterable[str],
        *,
        role: str | None = None,
        progress: bool = True,
        window: int = 256,
        **options: Unpack[ExplainOptions],
    ) -> Iterator[Contributions]:
        """Decompose texts, lazily and in order; `compare` explains two of the results.

        Args:
            texts: the texts; any iterable, read as far as needed.
            role: "query" or "document", to apply the model's prompts and routes.
            progress: show a progress bar.
            window: how many texts are read ahead, to decompose those of one length together.
            options: as for `explain`.
        """
        resolved = self.resolve(**options)
        return stream_contributions(self._decomposer(resolved), texts_in(texts), role, resolved, window, progress)

    def open_sentences(
        self,
        contributions: Sequence[Contributions],
        sentences: Sequence[Sequence[Unit]],
        *,
        role: str | None = None,
        **options: Unpack[ExplainOptions],
    ) -> list[Contributions]:
        """Contributions of texts with some sentences replaced by their words, as `level="zoom"` has them.

        Args:
            contributions: of the sentences of texts, as `decompose` gives them.
            sentences: for each of these texts, the sentences to open: units of its contributions.
            role: as for `decompose`. `options`: likewise.
        """
        decomposer = self._decomposer(self.resolve(**options))
        jobs = [Job.of(c.text, role, "sentence", c.settings.get("prompt")) for c in contributions]
        return decomposer.open_sentences([job._replace(zooms=True) for job in jobs], contributions, sentences)

    def compare(
        self, a: Contributions, b: Contributions, *, reference_terms: str | None = None, measure: str | None = None
    ) -> Explanation:
        """The explanation of two texts that `decompose` has decomposed: one small matrix product.

        The two may differ in layer, level or method; the settings then name both.
        """
        deleted = deletes(a.settings) and deletes(b.settings)
        treatment, measure = resolve_treatment(self.encoder, reference_terms, measure, deletes=deleted)
        return similarity.explain(a, b, reference_terms=treatment, measure=measure)

    def contrast(self, query: str, a: str, b: str, **options: Any) -> Contrast:
        """Why the query is closer to a than to b; options as for `explain`, roles for the query and the two texts."""
        for name, text in (("the query", query), ("text a", a), ("text b", b)):
            check_given(name, text)
        one, other = self.explain_many([(query, a), (query, b)], progress=False, **options)
        return Contrast(one, other)

    def explain_features(
        self,
        a: str,
        b: str,
        unit_a: str | int,
        unit_b: str | int,
        *,
        roles: Roles = (None, None),
        **options: Unpack[ExplainOptions],
    ) -> Array:
        """Which hidden dimensions make one entry of the matrix: (width, width), its sum is that entry.

        Args:
            a: one text.
            b: the other.
            unit_a: the unit of a at the level asked for, by its text or by its index, the row of the matrix.
            unit_b: of b, likewise the column.
            roles: as for `explain`.
            options: likewise; the method is integrated-jacobian, by default at the last layer but one. Every hidden
                dimension is a unit here, so lower layers take much longer: with MiniLM and six words on one core
                3 seconds at layer 5, 10 at layer 3 and 50 at layer 0.
        """
        options = {"method": "integrated-jacobian", **options}
        if options["method"] == "integrated-jacobian" and options.get("layer") is None:
            options["layer"] = -2
        resolved = self.resolve(**options)
        decomposer = self._decomposer(resolved)
        jobs = map(decomposer.job, (a, b), both_roles(roles), resolved.levels, resolved.prompts)
        sides = [decomposer.decompose_features(job, unit) for job, unit in zip(jobs, (unit_a, unit_b), strict=True)]
        return similarity.matrix_alone(*sides, **resolved.treatment)

    def resolve(self, **options: Unpack[ExplainOptions]) -> Options:
        """The options of `explain`, checked, with defaults filled in: what a call with these options will do."""
        for name in options:
            choose("option", name, ExplainOptions.__annotations__)
        return Options.resolve(self.encoder, **options)

    def _decomposer(self, options: Options) -> Decomposer:
        return Decomposer(self.encoder, options.method, options.rule, options.space, strict=self.strict)
