"""The judge: which explanation is true? Every kind of pair explanation on the same scale.

Completeness says that an explanation adds up, not that it is right. `judge` asks the model itself: what happens to its
score when the units that an explanation blames are really deleted?
"""

from pairlens.study.faithfulness.candidates import Candidate, line_up
from pairlens.study.faithfulness.court import Settings
from pairlens.study.faithfulness.trial import judge
from pairlens.study.faithfulness.verdict import Verdict

__all__ = ["Candidate", "Settings", "Verdict", "judge", "line_up"]
