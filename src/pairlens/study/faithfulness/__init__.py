"""The judge: measure how faithful explanations are, for every kind of explanation on the same scale.

An explanation that adds up to the score need not be right. `judge` takes pairs of texts and candidates (pairlens's
methods and the rivals), deletes units from the texts, and compares what every candidate predicts with what the
model's score does. It returns a `FaithfulnessResult`: a table with intervals, a summary and a picture.
"""

from pairlens.study.faithfulness.benchmark import judge
from pairlens.study.faithfulness.candidates import Candidate, make_candidates
from pairlens.study.faithfulness.evaluation import JudgeSettings
from pairlens.study.faithfulness.table import FaithfulnessResult

__all__ = ["Candidate", "FaithfulnessResult", "JudgeSettings", "judge", "make_candidates"]
