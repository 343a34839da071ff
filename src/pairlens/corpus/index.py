"""Index: a corpus that was decomposed once, and explains every search hit from then on."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pairlens
from pairlens.attribution.contrast import Contrast
from pairlens.attribution.contributions import Contributions
from pairlens.attribution.explanation import Explanation
from pairlens.corpus.decomposer import RecordDecomposer
from pairlens.corpus.identity import check_model, fingerprint, full_name, load_model
from pairlens.corpus.layout import Layout
from pairlens.corpus.records import TYPES, from_table, make_schema
from pairlens.corpus.search import Hit, Queries, Query, explain, find, zoom_in
from pairlens.corpus.settings import IndexSettings
from pairlens.corpus.store import Store
from pairlens.corpus.verification import Verification, verify
from pairlens.corpus.workload import Workload
from pairlens.corpus.writer import Report, Writer
from pairlens.errors import InputError, choose, whole
from pairlens.io import in_blocks
from pairlens.lens import Lens
from pairlens.methods import Method
from pairlens.model.loaded import PROBE
from pairlens.model.tokenize import check_text

FORMAT, VERSION = "pairlens.index", 2
CHUNK = 16
"""Texts that are decomposed together: an interruption loses seconds, and larger blocks are no faster."""
Record = Mapping[str, Any]


class Index:
    """Texts with their contributions in a folder; search it, and every hit comes with its explanation.

    Made with `Index.create`, opened with `Index.open`. Threads may share an index.

    Example:
        >>> import tempfile
        >>> from pairlens import Lens
        >>> index = Index.create(f"{tempfile.mkdtemp()}/index", Lens(), metadata={"stars": "int"})
        >>> texts = ["The coffee was cold. We left at once.", "A quiet hotel by the sea.", "Trains leave at noon."]
        >>> index.add({"id": str(n), "text": text, "stars": n} for n, text in enumerate(texts, 1))
        Report(added=3, updated=0, there=0, truncated=0, rejected=0)
        >>> hit = index.search("bad coffee", k=1)[0]
        >>> hit.id, hit.passage[0].text, [(pair.a.text, pair.b.text) for pair in hit.top(1)]
        ('1', 'The coffee was cold.', [('coffee', 'coffee')])
        >>> [hit.id for hit in index.search("bad coffee", where="metadata.stars > 1")]
        ['2', '3']
        >>> index.why_not("bad coffee", "2", k=1).difference > 0
        True
        >>> index.delete(["3"]), len(index)
        (1, 2)
    """

    def __init__(self, store: Store, lens: Lens | None) -> None:
        document = store.document
        if document.get("format") != FORMAT or document.get("version") != VERSION:
            raise InputError(
                f"{store.path} is not an index that this release reads: its format is {document.get('format')!r}, "
                f"version {document.get('version')!r}."
            )
        self.store = store
        self._document = document
        self.settings = IndexSettings.from_json(document["settings"])
        self._lens = lens
        self._checked = False
        self._queries = Queries()
        self._lock = threading.RLock()

    @classmethod
    def create(
        cls, path: str | Path, lens: Lens | None = None, *, metadata: Mapping[str, str] | None = None, **options: Any
    ) -> Index:
        """A new, empty index in a folder.

        Args:
            path: the folder; it is made where it does not exist.
            lens: the model; all-MiniLM-L6-v2 by default.
            metadata: other columns of the texts, each "text", "int", "float" or "bool".
            options: how to decompose texts: `level` ("sentence" by default, "word" or "token"), `method`, `layer`,
                `reference`, `reference_terms`, `measure`, `rule` and `tol`, as for `Lens.explain`, and `precision`
                ("float16" by default, or "float32"). By default Banzhaf values of sentences.
        """
        lens = lens or Lens()
        if Store.exists(Path(path)):
            raise InputError(f"{path} holds an index already. Open it with Index.open, or give another folder.")
        kept = dict(metadata or {})
        for kind in kept.values():
            choose("type of metadata", kind, TYPES)
        settings = IndexSettings.of(lens, **options)
        # Options that cannot be used are found here, before any text.
        (probe,) = lens.decompose([PROBE], progress=False, **settings.options())
        common = {name: value for name, value in probe.settings.items() if name != "nodes"}
        document = {
            "format": FORMAT,
            "version": VERSION,
            "pairlens": pairlens.__version__,
            "model": full_name(lens.name),
            "fingerprint": fingerprint(lens),
            "settings": settings.to_json(),
            "contributions": common,
            "metadata": kept,
        }
        schema = make_schema(len(probe.output), kept, settings.precision)
        return cls(Store.create(Path(path), schema, document), lens)

    @classmethod
    def open(cls, path: str | Path, lens: Lens | None = None, **options: Any) -> Index:
        """The index in a folder.

        Args:
            path: the folder.
            lens: the model that it was made with; by default it is loaded by its name when it is needed.
            options: as for `create`; they must be what the index was made with.

        Raises:
            InputError: there is no index, or it was made with another model or other settings.
        """
        index = cls(Store.open(Path(path)), lens)
        if lens is not None or options:
            index.settings.check(index.lens, options)
        return index

    @property
    def path(self) -> Path:
        """The folder."""
        return self.store.path

    @property
    def lens(self) -> Lens:
        """The model, checked to be the one that the index was made with."""
        with self._lock:
            if self._lens is None:
                self._lens = load_model(self._document)
            if not self._checked:
                check_model(self._document, self._lens)
                self._checked = True
            return self._lens

    @property
    def model(self) -> str:
        """The name of the model that the index was made with."""
        return self._document["model"]

    @property
    def dtype(self) -> str:
        """The dtype that the contributions were computed in."""
        return self._document["contributions"]["dtype"]

    @property
    def metadata(self) -> dict[str, str]:
        """The columns of metadata and their types."""
        return dict(self._document["metadata"])

    def __len__(self) -> int:
        return self.store.count()

    def __repr__(self) -> str:
        how = f"{self.settings.level} level, {self.settings.method.name}, {self.settings.precision}"
        return f"Index({str(self.path)!r}, {len(self)} texts, {self._document['model']}, {how})"

    # Writing.

    def add(self, records: Iterable[Record], *, passages: bool = False) -> Report:
        """Add texts. A record whose id is taken is rejected, unless its text and metadata are the same.

        Args:
            records: mappings with `text`, perhaps `id` (the number of the record by default), and metadata.
            passages: split texts that are longer than the model takes into passages, `id#1`, `id#2` and so on, each of
                as many sentences as fit. By default their beginning is indexed.

        Returns:
            How many texts are new, how many were cut, and the rejected records with their reasons.
        """
        return self._write(records, passages=passages, update=False)

    def update(self, records: Iterable[Record], *, passages: bool = False) -> Report:
        """Add texts, or replace the texts with the same ids; arguments as for `add`."""
        return self._write(records, passages=passages, update=True)

    def delete(self, ids: Iterable[str]) -> int:
        """Delete texts by their ids, with all their passages; returns how many were deleted."""
        if isinstance(ids, str):
            raise InputError("delete takes several names; for one, write delete([id]).")
        return self.store.delete(map(str, ids))

    def optimize(self) -> None:
        """Merge small files and index the ids, after many small changes."""
        self.store.optimize()

    def index_vectors(self) -> None:
        """Build the vector index that approximate search needs; it finds texts that are added later too."""
        self.store.index_vectors("cosine" if self.settings.measure == "cosine" else "dot")

    # Asking.

    def search(
        self,
        query: str,
        k: int = 10,
        *,
        where: str | None = None,
        approximate: bool = False,
        level: str | None = None,
        method: str | Method | None = None,
        zoom: bool = True,
    ) -> list[Hit]:
        """The k texts nearest to a query, each with its explanation.

        Args:
            query: the text to search for.
            k: how many hits.
            where: an SQL condition on metadata, such as "metadata.year > 2000".
            approximate: ask the index that `index_vectors` builds, instead of looking at every text.
            level: of the query's units, "word" by default.
            method: how to decompose the query; by default as the texts were.
            zoom: explain a hit by the words of its sentences that matter most, as `Lens.explain` does with
                `level="zoom"`, and not by its sentences alone. Costs forward passes for every hit whose explanation is
                asked for; an index of other units or methods has none.
        """
        k = whole("k", k, 1)
        if approximate and not self.store.indexed:
            raise InputError(
                "approximate search needs an index of the embeddings: Index.index_vectors(), or "
                f"pairlens index --out {self.path} --approximate"
            )
        asked = self._query(query, level, method)
        return find(self.store, asked, self.settings, self._common, k, where, approximate=approximate, zoom=zoom)

    def explain(
        self,
        query: str,
        text_id: str,
        *,
        level: str | None = None,
        method: str | Method | None = None,
        zoom: bool = True,
    ) -> Explanation:
        """Why a query and a text of the index are as similar as they are; arguments as for `search`."""
        asked, (c,) = self._query(query, level, method), self.contributions([text_id])
        e = explain(asked.contributions, c, self.settings)
        return zoom_in(e, asked, c, self.settings) if zoom else e

    def compare(self, id_a: str, id_b: str) -> Explanation:
        """Why two texts of the index are as similar as they are."""
        a, b = self.contributions([id_a, id_b])
        return explain(a, b, self.settings)

    def why_not(self, query: str, text_id: str, k: int = 10, *, where: str | None = None, **options: Any) -> Contrast:
        """What keeps a text below the k-th hit: the k-th hit's explanation (a) against the text's own (b).

        Args:
            query: the text that was searched for.
            text_id: the id of the text.
            k: how many hits there are; with fewer texts, the last hit counts.
            where: as for `search`, like the other options.
        """
        hits = self.search(query, k, where=where, **options)
        hit = next((hit for hit in hits if hit.id == text_id), None)
        if hit is not None:
            raise InputError(f"{text_id!r} is hit {hit.rank} of {len(hits)}: nothing keeps it below the last one.")
        if where is not None and not self.store.has(text_id, where):
            raise InputError(f"{text_id!r} does not fit the filter {where!r}: that, and not its score, keeps it out.")
        chosen = {name: options[name] for name in ("level", "method", "zoom") if name in options}
        e = self.explain(query, text_id, **chosen)
        if not hits:
            raise InputError(
                f"nothing was found with the filter {where!r}, so there is no hit to compare {text_id!r} with."
            )
        return Contrast(hits[-1].explanation, e)

    def contributions(self, ids: Sequence[str]) -> list[Contributions]:
        """The contributions of the texts with these ids, in this order."""
        texts = self.fetch(ids)
        missing = [name for name in ids if name not in texts]
        if missing:
            raise InputError(f"the index has no text {missing[0]!r}.")
        return [texts[name] for name in ids]

    def fetch(self, ids: Sequence[str]) -> dict[str, Contributions]:
        """The contributions of the texts with these ids; ids that the index does not have are left out."""
        rows = self.store.fetch(ids)
        return dict(zip(rows.column("id").to_pylist(), from_table(rows, self._common), strict=True))

    def verify(self, sample: int = 20, seed: int = 0) -> Verification:
        """Decompose texts again and compare with what is stored; also look for ids that occur twice.

        Args:
            sample: how many texts, drawn at random.
            seed: of the draw.
        """
        return verify(self.store, self.lens, self.settings, self._common, whole("sample", sample, 1), seed)

    # Inside.

    @property
    def _common(self) -> dict[str, Any]:
        """The settings that all stored contributions have in common, with this lens's name for the model."""
        settings = dict(self._document["contributions"])
        if self._lens is not None:
            settings |= {"model": self._lens.name, "fingerprint": self._lens.encoder.fingerprint}
        return settings

    def decomposer(self, *, passages: bool) -> RecordDecomposer:
        """The function that turns texts into rows of this index; `passages` as for `add`."""
        return RecordDecomposer(self.lens, self.settings, self.store.schema, passages=passages)

    def workload(self, *, passages: bool) -> Workload:
        """What the texts of this index cost in relation to each other; `passages` as for `add`."""
        return Workload(self.lens.encoder, self.settings.role, passages=passages)

    def _write(self, records: Iterable[Record], *, passages: bool, update: bool) -> Report:
        if isinstance(records, Mapping | str):
            raise InputError("expected several records; for one, write [{'id': …, 'text': …}].")
        layout = Layout("text", "id", self.metadata)
        decompose, writer = self.decomposer(passages=passages), Writer(self.store, "", update=update)
        report = Report()
        for block in in_blocks(enumerate(records, 1), CHUNK):
            read = [layout.read_record(number, record) for number, record in block]
            report += writer.write(*writer.prepare(decompose.records(read), decompose))
        return report

    def _query(self, query: str, level: str | None, method: str | Method | None) -> Query:
        """The query with its embedding and contributions; recent queries are cached."""
        check_text(query)
        key = (query, level, repr(method))
        return self._queries.get(key, lambda: Query(query, self.lens, self.settings.query_options(level, method)))
