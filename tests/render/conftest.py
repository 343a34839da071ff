"""A default explanation of a real model, which the tests of all views share."""

import pytest

from explanations import make_zoomed
from pairlens import Banzhaf
from pairlens.attribution.explanation import Explanation

GUITAR = ("A man is playing a guitar.", "A man is playing a flute.")


@pytest.fixture(scope="session")
def guitar(minilm) -> Explanation:
    """An explanation of words with effects, measured deletions and a forecast."""
    return minilm.explain(*GUITAR, level="word", method=Banzhaf())


@pytest.fixture(scope="session")
def negation(minilm) -> Explanation:
    """An explanation of words in which some words have rows for what they do together."""
    return minilm.explain("The movie was good.", "The movie was not good.", level="word", method=Banzhaf(compounds=8))


@pytest.fixture(scope="session")
def zoomed() -> Explanation:
    """An explanation of sentences, one of them opened into its words."""
    return make_zoomed()
