"""WordNet's files: lemmas, synonyms and antonyms. https://wordnet.princeton.edu (Debian's package is wordnet-base)."""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path

from pairlens.errors import InputError

PARTS = {"noun": "n", "verb": "v", "adj": "a", "adv": "r"}
UPOS = {"NOUN": "noun", "PROPN": "noun", "VERB": "verb", "AUX": "verb", "ADJ": "adj", "ADV": "adv"}
PLACES = (
    "/usr/share/wordnet",
    "/usr/local/share/wordnet",
    "/usr/local/WordNet-3.0/dict",
    "/opt/homebrew/share/wordnet",
)
# Endings and their replacements in the dictionary: WordNet's rules of detachment, in its order.
_ENDINGS = {
    "noun": "s: ses:s xes:x zes:z ches:ch shes:sh men:man ies:y",
    "verb": "s: ies:y es:e es: ed:e ed: ing:e ing:",
    "adj": "er: est: er:e est:e",
    "adv": "",
}


class WordNet:
    """WordNet's database, read from its folder.

    Args:
        folder: the folder of index.noun, data.noun and so on; None to look in the usual places.

    Raises:
        InputError: WordNet is not there.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or find()
        if self.folder is None or not (self.folder / "index.noun").is_file():
            where = f"in {folder}" if folder else "where it usually is"
            raise InputError(
                f"WordNet is not {where}. Install it (Debian: apt install wordnet-base), or give the folder that has "
                "index.noun and data.noun with --wordnet."
            )
        self._data: dict[str, bytes] = {}

    def lemmas(self, word: str, part: str | None = None) -> set[str]:
        """The dictionary forms that a word may have, in lower case.

        Args:
            word: the word as written.
            part: "noun", "verb", "adj" or "adv"; all of them by default.
        """
        form = word.lower().replace(" ", "_")
        lemmas = set()
        for name in [part] if part else PARTS:
            index, exceptions = self._index[name], self._exceptions[name]
            candidates = [form, *exceptions.get(form, ())]
            if form not in exceptions:
                rules = (rule.split(":") for rule in _ENDINGS[name].split())
                candidates += [form.removesuffix(end) + new for end, new in rules if form.endswith(end)]
            lemmas.update(lemma for lemma in candidates if lemma in index)
        return lemmas

    def senses(self, lemma: str, part: str | None = None) -> list[tuple[str, int]]:
        """The meanings of a dictionary form, by part of speech and offset, the most frequent first."""
        return [(name, at) for name in ([part] if part else PARTS) for at in self._index[name].get(lemma, (0, ()))[1]]

    def synonyms(self, one: str, other: str, part: str | None = None) -> bool:
        """Whether two words, as written, share a meaning."""
        sides = [{s for lemma in self.lemmas(word, part) for s in self.senses(lemma, part)} for word in (one, other)]
        return bool(sides[0] & sides[1])

    def members(self, part: str, offset: int) -> list[str]:
        """The words of a meaning."""
        fields = self._line(part, offset).split()
        count = int(fields[3], 16)
        return [fields[4 + 2 * i].split("(")[0] for i in range(count)]  # adjectives may carry a marker: (p)

    def antonyms(self, lemma: str, part: str = "adj", senses: int | None = None) -> list[str]:
        """The antonyms of a dictionary form, in its first `senses` meanings or in all."""
        antonyms: dict[str, None] = {}
        for _, offset in self.senses(lemma, part)[:senses]:
            fields = self._line(part, offset).split(" | ")[0].split()
            count = int(fields[3], 16)
            members = self.members(part, offset)
            links = fields[5 + 2 * count :]
            for symbol, target, kind, ends in zip(*(links[i::4] for i in range(4)), strict=False):
                if symbol == "!" and members[int(ends[:2], 16) - 1].lower() == lemma:
                    name = next(name for name, letter in PARTS.items() if letter == kind.replace("s", "a"))
                    antonyms[self.members(name, int(target))[int(ends[2:], 16) - 1].lower()] = None
        return list(antonyms)

    def common(self, part: str) -> list[str]:
        """All dictionary forms of a part of speech, those with most tagged meanings first."""
        index = self._index[part]
        return sorted(index, key=lambda lemma: (-index[lemma][0], lemma))

    @cached_property
    def _index(self) -> dict[str, dict[str, tuple[int, tuple[int, ...]]]]:
        """By part of speech and lemma: the number of meanings tagged in texts, and the offsets of all meanings."""
        index: dict[str, dict[str, tuple[int, tuple[int, ...]]]] = {}
        for part in PARTS:
            lemmas = index[part] = {}
            for line in self._read(f"index.{part}").splitlines():
                if line.startswith(" "):
                    continue  # the licence
                fields = line.split()
                count = int(fields[2])
                lemmas[fields[0]] = int(fields[-count - 1]), tuple(int(offset) for offset in fields[-count:])
        return index

    @cached_property
    def _exceptions(self) -> dict[str, dict[str, list[str]]]:
        lists = {part: [line.split() for line in self._read(f"{part}.exc").splitlines()] for part in PARTS}
        return {part: {fields[0]: fields[1:] for fields in lines if fields} for part, lines in lists.items()}

    def _line(self, part: str, offset: int) -> str:
        if part not in self._data:
            self._data[part] = self._read(f"data.{part}").encode("latin-1")
        content = self._data[part]
        return content[offset : content.index(b"\n", offset)].decode("latin-1")

    def _read(self, name: str) -> str:
        try:
            return (self.folder / name).read_bytes().decode("latin-1")  # pyright: ignore[reportOptionalOperand]
        except OSError as error:
            raise InputError(f"WordNet's file {name} cannot be read in {self.folder}: {error.strerror}.") from error


def find() -> Path | None:
    """WordNet's folder, if there is one: $WNSEARCHDIR, or the folders of the usual packages."""
    given = os.environ.get("WNSEARCHDIR")
    places = [Path(place) for place in ([given] if given else []) + list(PLACES)]
    return next((place for place in places if (place / "index.noun").is_file()), None)
