"""Peak memory of explaining two texts of 256 tokens at word level from layer 0, with all-MiniLM-L6-v2.

The size of a chunk of points and tangents does not depend on the number of nodes. So a loose tolerance uses the same
planning and the same chunks as a tight one, in a fraction of the time. `--full` integrates to tol 1e-3.
"""

from __future__ import annotations

import argparse
import resource
import time
import warnings

from pairlens import Lens

SENTENCE = (
    "The committee met on a rainy afternoon and discussed, at some length, whether the bridge should be rebuilt. "
)


def main() -> None:
    """Print the peak memory before and after the explanation."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="integrate to tol 1e-3 (takes minutes)")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    lens = Lens()
    texts = [SENTENCE * 14, SENTENCE.replace("bridge", "tunnel").replace("rainy", "sunny") * 14]
    lens.explain("A short text.", "Another one.", layer=lens.layers)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    start = time.perf_counter()
    e = lens.explain(*texts, level="word", tol=1e-3 if options.full else 0.9)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    tokens, units = [len(e.tokens_a), len(e.tokens_b)], [len(e.units_a), len(e.units_b)]
    print(
        f"tokens {tokens}, units {units}, {e.settings['rule']}, nodes {e.settings['nodes']}, "
        f"{time.perf_counter() - start:.0f} s: peak {peak:.2f} GiB, of which {before:.2f} GiB before the texts "
        "(goal: under 2)"
    )


if __name__ == "__main__":
    main()
