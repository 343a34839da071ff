"""The files whose annotations, shapes of arrays included, are executed in tests (conftest.py), and how.

Files that take a user's input are left out (lens, functional, attribution.options and stream, text.units,
quadrature.rules, the methods' options, model.loading, cli, web): wrong input must raise their own errors.
"""

from beartype import BeartypeConf, beartype

CHECKED = (
    "attribution.contrast",
    "attribution.contributions",
    "attribution.explanation",
    "attribution.products",
    "attribution.similarity",
    "autodiff.dual",
    "autodiff.streams",
    "autodiff.tail",
    "corpus.records",
    "corpus.store",
    "linalg",
    "methods.base",
    "model.deletion",
    "model.encoder",
    "model.layers",
    "model.pooling",
    "model.reference",
    "model.states",
    "quadrature.chebyshev",
    "quadrature.integrate",
    "quadrature.maps",
    "quadrature.panels",
    "quadrature.paths",
    "quadrature.planner",
    "quadrature.problems",
    "quadrature.query",
    "quadrature.smooth",
    "render.axis",
    "study.faithfulness.deletable_text",
    "study.faithfulness.evaluation",
    "study.faithfulness.ground_truth",
    "study.faithfulness.measures",
    "study.faithfulness.text_at_layer",
    "study.language.annotations",
    "study.language.relations",
    "study.statistics",
    "subsets",
)

# An int may stand where a float is annotated (PEP 484).
check = beartype(conf=BeartypeConf(is_pep484_tower=True))
