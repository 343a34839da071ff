"""The catalogue of the papers' studies, read from catalogue.toml: what each does and what the paper found.

It imports nothing heavy, so that the commands can show their help at once.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from importlib.resources import files


@dataclass(frozen=True)
class StudyInfo:
    """A study of the papers, independent of model and data.

    Attributes:
        name: the command's word, and the name of the study's folder.
        paper: the paper it comes from.
        title: the title of its picture.
        where: the figures or the section of the paper.
        does: the study in one sentence.
        says: the paper's finding.
        options: the options that the command of this study has besides `--data`, `--out` and others that all have.
    """

    name: str
    paper: str
    title: str
    where: str
    does: str
    says: str
    options: tuple[str, ...]


_PAPERS = tomllib.loads(files("pairlens.study").joinpath("catalogue.toml").read_text(encoding="utf-8"))["papers"]
CATALOGUE = {
    name: StudyInfo(name, paper["title"], **entries | {"options": tuple(entries["options"])})
    for paper in _PAPERS
    for name, entries in paper["studies"].items()
}
"""The studies by name, in the papers' order."""
