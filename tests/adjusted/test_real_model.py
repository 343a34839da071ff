"""all-MiniLM-L6-v2 after a short training: its matrices sum to its scores, here and in a fresh process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

from imports import OPTIONAL, WITHOUT
from pairlens import Lens, adjust
from pairlens.adjusted.data import read_pairs
from pairlens.model.loading import load

REAL = [
    ("A man is playing a guitar.", "A man plays music on a guitar."),
    ("The coffee here is not good.", "This coffee is bad."),
    ("Two dogs run through the snow.", "The stock market fell sharply today."),
]
STSB = Path(os.environ.get("PAIRLENS_DATA", Path(__file__).parents[3] / "shared" / "data")) / "stsb"
TOL = 1e-3


@pytest.fixture(scope="module")
def real(tmp_path_factory) -> Path:
    """all-MiniLM-L6-v2 after a few steps of training."""
    folder = tmp_path_factory.mktemp("real") / "minilm"
    pairs = [(*pair, score) for pair, score in zip(REAL, (0.9, 0.7, 0.0), strict=True)]
    adjust(None, pairs, folder, epochs=1, batch_size=1, lr=1e-4, device="cpu", progress=False)
    return folder


def cosines(folder: Path, pairs: list[tuple[str, str]]) -> np.ndarray:
    """Return the cosines by sentence-transformers, which finds the adjusting module by its name."""
    model = SentenceTransformer(str(folder), device="cpu", trust_remote_code=True)
    a, b = (model.encode([pair[side] for pair in pairs]).astype(float) for side in (0, 1))
    return (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)


def test_the_matrix_of_a_real_model_sums_to_its_score(real):
    scores, lens = cosines(real, REAL), Lens(str(real), device="cpu")
    plain = Lens(device="cpu").explain(*REAL[0], layer=6, reference_terms="shift")
    assert abs(plain.score - scores[0]) > 1e-3  # it was trained
    for layer in (3, 5):
        for e, score in zip(lens.explain_many(REAL, layer=layer, tol=TOL), scores, strict=True):
            assert (e.base, abs(e.effects_a).max(), abs(e.effects_b).max()) == (0.0, 0.0, 0.0)
            assert abs(e.matrix.sum() - score) <= TOL
            assert e.score == pytest.approx(score, abs=1e-5)


@pytest.mark.slow
def test_a_real_model_encodes_the_same_in_a_fresh_process(real, tmp_path: Path):
    texts = [text for pair in REAL for text in pair]
    code = (
        WITHOUT.format(optional=[*OPTIONAL, "accelerate"])
        + "import numpy as np\nfrom sentence_transformers import SentenceTransformer\n"
        f"model = SentenceTransformer({str(real)!r}, device='cpu', trust_remote_code=True)\n"
        f"np.save({str(tmp_path / 'own.npy')!r}, model.encode({texts!r}))"
    )
    # The order of a sum depends on the number of threads, and tests have one.
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert np.array_equal(np.load(tmp_path / "own.npy"), load(str(real), "cpu")[0].encode(texts))


@pytest.mark.slow
def test_matrices_of_200_pairs_of_a_real_model_sum_to_their_scores(real):
    if not (STSB / "stsb-en-test.csv").is_file():
        pytest.skip(f"{STSB} does not hold STS-B")
    read = read_pairs(STSB / "stsb-en-test.csv")
    drawn = np.random.default_rng(0).permutation(len(read))[:200]
    pairs = [(read.a[int(i)], read.b[int(i)]) for i in drawn]
    scores, lens = cosines(real, pairs), Lens(str(real), device="cpu")
    for layer in (0, 3, 5):
        sums = np.array([e.matrix.sum() for e in lens.explain_many(pairs, layer=layer, tol=TOL)])
        assert abs(sums - scores).max() <= TOL
