"""The catalogue of the papers' studies: what each does and what the paper found. It imports nothing heavy."""

from __future__ import annotations

from dataclasses import dataclass

FIRST = "An Attribution Method for Siamese Encoders (Möller, Nikolaev and Padó, EMNLP 2023)"
SECOND = "Approximate Attributions for Off-the-Shelf Siamese Transformers (Möller, Nikolaev and Padó, EACL 2024)"


@dataclass(frozen=True)
class StudyInfo:
    """A study of the papers, independent of model and data.

    Attributes:
        name: the command's word, and the name of the study's folder.
        title: the title of its picture.
        paper: the paper it comes from, `FIRST` or `SECOND`.
        where: the figures or the section of the paper.
        says: the paper's finding.
        does: the study in one sentence.
        options: the options that the command of this study has besides `--data`, `--out` and others that all have.
    """

    name: str
    title: str
    paper: str
    where: str
    says: str
    does: str
    options: tuple[str, ...] = ()


_ALL = (
    StudyInfo(
        name="convergence",
        title="How many points an integral needs",
        paper=FIRST,
        where="§ 3.2, Figs. 2 and 7",
        says="With equal steps, contributions to layer 9 of a 12-layer MPNet are off by (5 ± 5)·10⁻³ at 50 points, "
        "those to layer 7 by (2 ± 3)·10⁻³ at 1,000, and at shallower layers the error has not begun to fall at 2,500; "
        "a RoBERTa's input is off by (1 ± 1)·10⁻² there.",
        does="How many integration points it takes until the contributions add up to the score, at every layer.",
        options=("layer", "reference_terms", "sweep", "points"),
    ),
    StudyInfo(
        name="distribution",
        title="Contributions of token pairs, layer by layer",
        paper=FIRST,
        where="§ 3.3, Figs. 3 and 8",
        says="In an adjusted MPNet 38 % of the contributions to layer 11 of 12 are negative, and 5 % at the output.",
        does="How the contributions of token pairs are distributed, layer by layer, and how many of them are negative.",
        options=("layer", "reference_terms", "sweep", "tol"),
    ),
    StudyInfo(
        name="cumulative",
        title="The strongest token pairs, added up",
        paper=FIRST,
        where="§ 3.3, Fig. 5",
        says="The strongest 5 % of the token pairs sum to 77 ± 133 % of the prediction. For a standard deviation below "
        "5 % it takes 78 % of them, for one below 2 % it takes 92 %.",
        does="How many of the strongest token pairs it takes to account for the score.",
        options=("method", "layer", "reference_terms", "tol"),
    ),
    StudyInfo(
        name="parts-of-speech",
        title="Parts of speech of the strongest pairs of words",
        paper=FIRST,
        where="§ 3.4, Fig. 6",
        says="Among the highest 10 % of contributions, pairs of nouns have a share of almost 25 %, followed by pairs "
        "of verbs and of a noun and a verb. Nouns and verbs rebuild 53 ± 90 % of the prediction, the ten most "
        "frequent relations 66 ± 98 %, the strongest 90 % of the pairs 95 ± 29 %.",
        does="Which parts of speech the strongest pairs of words have, and how much of the score they rebuild.",
        options=("method", "layer", "reference_terms", "tol", "annotations", "spacy", "words"),
    ),
    StudyInfo(
        name="layers",
        title="One pair, layer by layer",
        paper=FIRST,
        where="Appendix C, Fig. 4",
        says="Layers 11 and 7 show that “poorly” takes from the score; at the output that is completely absent.",
        does="One pair of texts at every layer, side by side.",
        options=("layer", "reference_terms", "pair", "sweep", "tol"),
    ),
    StudyInfo(
        name="models",
        title="One pair, model by model",
        paper=FIRST,
        where="Appendix F, Fig. 9",
        says="Attributions of different models can differ in character even if the models agree on the score.",
        does="One pair of texts as several models see it, side by side.",
        options=("method", "layer", "reference_terms", "pair", "tol", "other", "adjusted", "twin"),
    ),
    StudyInfo(
        name="failures",
        title="Where the model is furthest from people",
        paper=FIRST,
        where="Appendix G, Fig. 10",
        says="Shows pairs whose similarity an adjusted MPNet over- or underestimates; analysing them is left open.",
        does="The pairs whose score is furthest from what people say, over and under, each explained.",
        options=("method", "layer", "reference_terms", "tol"),
    ),
    StudyInfo(
        name="agreement",
        title="Approximate against exact contributions",
        paper=SECOND,
        where="its comparison of approximate and exact attributions",
        says="Approximate attributions (“ignore”) often agree with those of a model that was adjusted to have exact "
        "ones, and are reliable for very deep layers.",
        does="Whether approximate contributions agree with exact ones, layer by layer.",
        options=("layer", "sweep", "tol", "adjusted", "twin"),
    ),
    StudyInfo(
        name="syntactic-roles",
        title="Syntactic roles that contribute together",
        paper=SECOND,
        where="its analysis of syntactic roles",
        says="Asks which syntactic roles Siamese transformers attend to. The first paper's § 3.4 recalls that "
        "arguments and predicates of main clauses were found to determine similarity on synthetic data.",
        does="Which syntactic roles contribute together with which, normalised by how often they meet.",
        options=("method", "layer", "reference_terms", "tol", "annotations", "spacy", "words"),
    ),
    StudyInfo(
        name="negation",
        title="What a negation contributes",
        paper=SECOND,
        where="its analysis of negation",
        says="Confirms that Siamese transformers mostly ignore negation.",
        does="Whether the model sees negation: what a cue contributes, and what becomes of the score without it.",
        options=("method", "layer", "reference_terms", "tol"),
    ),
    StudyInfo(
        name="adjectives",
        title="Adjectives of the same and of opposite meaning",
        paper=SECOND,
        where="its analysis of adjectives",
        says="Explores how Siamese transformers judge semantically opposite adjectives.",
        does="How the model judges adjectives of the same, the opposite and another meaning in the same sentences.",
        options=("method", "layer", "reference_terms", "tol", "wordnet", "adjectives"),
    ),
    StudyInfo(
        name="lexical-bias",
        title="The same word, the same meaning, and other words",
        paper=SECOND,
        where="its analysis of lexical bias",
        says="Finds that Siamese transformers exhibit lexical bias.",
        does="Whether pairs of the same word contribute more than words of the same meaning, at equal scores.",
        options=("method", "layer", "reference_terms", "tol", "annotations", "spacy", "wordnet"),
    ),
)
CATALOGUE = {about.name: about for about in _ALL}
"""The studies by name, in the papers' order."""
