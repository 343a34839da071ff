"""The module that makes a model an adjusted one: e(x) = e'(x) - e'(r), so that e(r) = 0.

e' is what a sentence encoder gives before any final Normalize, and r the reference of x: the same special tokens and
prompt, every other token replaced by padding. The reference depends on the length alone (and on the prompt), so that
it is computed once for each length, and encoding costs what the plain model costs.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from sentence_transformers.util import import_from_string
from torch import Tensor, nn

from pairlens.adjusted.body import check_body, class_path
from pairlens.adjusted.features import Features, keys, own_tokens, take
from pairlens.adjusted.nearby import references_near
from pairlens.model.adjusted_layout import CONFIG, stage_classes, stage_folder
from pairlens.model.reference import reference_token, replaced, special_ends
from pairlens.model.weight_cache import WeightCache

try:
    bases: Any = import_module("sentence_transformers.base.modules")
except ModuleNotFoundError:  # before sentence-transformers 5.4
    bases = import_module("sentence_transformers.models")

LEAD = "reference_lead"
"""How many leading tokens of every text the reference keeps, in a batch's features; there where a prompt is."""


class Adjusted(bases.InputModule):
    """A sentence encoder's modules up to a final Normalize, shifted by the embedding of the reference.

    It stands first in the list of a SentenceTransformer's modules, and does what the modules in it do: it reads texts,
    trains, is saved and loaded with them. `token_embeddings` stay those of the text: the shift is in the embedding.

    Args:
        body: the modules, from the one that reads texts to the one before a final Normalize.

    Example:
        >>> from sentence_transformers import SentenceTransformer
        >>> from pairlens.loading import offline_model
        >>> *body, normalize = SentenceTransformer(str(offline_model()), device="cpu")
        >>> model = SentenceTransformer(modules=[Adjusted(body), normalize], device="cpu")
        >>> float(abs(model.encode("[PAD] [PAD] [PAD]")).max())  # this text is its own reference
        0.0
    """

    config_file_name = CONFIG
    save_in_root = True

    def __init__(self, body: Iterable[nn.Module]) -> None:
        super().__init__()
        self.body = nn.ModuleList(body)
        check_body(list(self.body))
        first: Any = self.body[0]
        if hasattr(first, "unpad_inputs"):
            first.unpad_inputs = False  # Texts that are packed into one row have no length of their own.
        self.forward_kwargs = {name for module in self.body for name in getattr(module, "forward_kwargs", ())}
        self._memory = WeightCache()
        self._ends: tuple[Any, tuple[int, int]] | None = None

    # What a batch becomes.

    def forward(self, features: Features, **kwargs: Any) -> Features:
        """The embeddings of a batch of texts, less those of their references.

        Args:
            features: `input_ids` and `attention_mask`, both (texts, tokens), and whatever else the modules take.
            kwargs: what the modules take besides.

        Returns:
            The features with `sentence_embedding`, (texts, dim), and what else the modules give.
        """
        inputs = dict(features)
        ids, mask = inputs["input_ids"], own_tokens(inputs)
        reference = replaced(ids, self.kept(inputs) | ~mask, "padding", self)
        if self.training or torch.is_grad_enabled():
            found, shift = self._run_both(inputs, reference, mask, kwargs)
            features.update(found)
        else:
            # First what looks at numbers: on a GPU it would wait for all that was begun before.
            shift = self._remember(inputs, reference, mask, kwargs)
            features = self._run(features, kwargs)
        embedding: Tensor = features["sentence_embedding"]
        # A text that is its own reference is zero exactly, and Normalize leaves it there.
        same = (reference == ids).all(1, keepdim=True)
        features["sentence_embedding"] = torch.where(same, 0.0, embedding - shift.to(embedding))
        return features

    def kept(self, features: Features) -> Tensor:
        """Which tokens also stand in the reference: special ones and the prompt's, (texts, tokens) booleans."""
        mask = own_tokens(features)
        before, after = self._special_ends()
        lead = features.get(LEAD, features.get("prompt_length", 0))
        # Padding may stand on either side: places count from a text's first token.
        place = mask.cumsum(1) - 1
        length = mask.sum(1, keepdim=True)
        lead = torch.as_tensor(lead, device=mask.device).reshape(-1, 1)
        return mask & ((place < before) | (place >= length - after) | (place < lead))

    def note_prompt(self, features: Features, prompt: str | None) -> None:
        """Put into the features how many leading tokens of every text are the prompt's, with the special ones.

        Where prompt and text meet, tokens may merge ("query: " and "cat" to "▁query", ":", "▁cat"). What counts is
        what a text has in common with the prompt alone.
        """
        if not prompt:
            return
        own: Tensor = self.body[0].preprocess([prompt])["input_ids"][0]  # pyright: ignore[reportCallIssue]
        own = own[: len(own) - self._special_ends()[1]]
        texts = zip(features["input_ids"], own_tokens(features), strict=True)
        rows = [row[keep][: len(own)].cpu() for row, keep in texts]
        same = [row == own[: len(row)].to(row) for row in rows]
        features[LEAD] = torch.tensor([int(own.cumprod(0).sum()) for own in same])

    def _run(self, features: Features, kwargs: dict[str, Any]) -> Features:
        for module in self.body:
            accepted = getattr(module, "forward_kwargs", ())
            features = module(features, **{name: value for name, value in kwargs.items() if name in accepted})
        return features

    def _run_both(
        self, inputs: Features, reference: Tensor, mask: Tensor, kwargs: dict[str, Any]
    ) -> tuple[Features, Tensor]:
        """The texts' features and the references' embeddings, with gradients, from one pass over one batch.

        Each distinct reference is in it once.
        """
        names, count = keys(reference, mask), len(reference)
        distinct = {name: row for row, name in reversed(list(enumerate(names)))}
        places = {name: count + place for place, name in enumerate(distinct)}
        rows = torch.tensor([*range(count), *distinct.values()], device=reference.device)
        batch = take(inputs, rows)
        batch["input_ids"] = torch.cat([inputs["input_ids"], reference[rows[count:]]])
        found = self._run(batch, kwargs)
        shift = found["sentence_embedding"][torch.tensor([places[name] for name in names], device=reference.device)]
        texts = torch.arange(count, device=reference.device)
        return {**take(found, texts, len(rows)), "input_ids": inputs["input_ids"]}, shift

    def _remember(self, inputs: Features, reference: Tensor, mask: Tensor, kwargs: dict[str, Any]) -> Tensor:
        """The references' embeddings, from memory where they are known.

        They are computed apart from the texts, so that they do not depend on what else is in the batch.
        """
        self._memory.check(self)
        device = reference.device.type
        # What an embedding depends on besides the weights and its own tokens.
        settings = (
            str(sorted(kwargs.items())),
            torch.is_autocast_enabled(device),
            torch.get_autocast_dtype(device),
            str(inputs.get("prompt_length")),
        )

        def compute(row: int) -> dict[Any, Tensor]:
            own = take({**inputs, "input_ids": reference}, torch.tensor([row], device=reference.device))
            columns = mask[row].nonzero()[:, 0]
            for name, value in own.items():
                if isinstance(value, Tensor) and value.shape[:2] == (1, mask.shape[1]):
                    own[name] = value[:, columns]
            kept = self.kept(inputs)[row, columns]
            padding, _ = reference_token("padding", self)
            longest = self.max_seq_length or len(columns)
            batch, near = references_near(own, kept, padding, self.tokenizer.padding_side, longest)
            names = keys(batch["input_ids"], near)
            found = self._run(batch, kwargs)["sentence_embedding"]
            return {(name, settings): embedding for name, embedding in zip(names, found, strict=True)}

        names = [(name, settings) for name in keys(reference, mask)]
        return torch.stack([self._memory.look_up(name, lambda row=row: compute(row)) for row, name in enumerate(names)])

    def _special_ends(self) -> tuple[int, int]:
        """How many special tokens the tokenizer puts before and after a text."""
        tokenizer = self.tokenizer
        if self._ends is None or self._ends[0] is not tokenizer:
            self._ends = tokenizer, special_ends(tokenizer)
        return self._ends[1]

    # Texts come in as the first of the modules reads them.

    def preprocess(self, inputs: Sequence[Any], prompt: str | None = None, **kwargs: Any) -> Features:
        """A batch's features, from its texts."""
        features = self.body[0].preprocess(inputs, prompt=prompt, **kwargs)  # pyright: ignore[reportCallIssue]
        self.note_prompt(features, prompt)
        return features

    def tokenize(self, texts: list[Any], **kwargs: Any) -> Features:
        """Likewise, for sentence-transformers before 5.4."""
        return self.body[0].tokenize(texts, **kwargs)  # pyright: ignore[reportCallIssue]

    @property
    def tokenizer(self) -> Any:
        """The first module's tokenizer."""
        return self.body[0].tokenizer

    @tokenizer.setter
    def tokenizer(self, value: Any) -> None:
        self.body[0].tokenizer = value

    @property
    def max_seq_length(self) -> int | None:
        """How many tokens of a text are read."""
        return getattr(self.body[0], "max_seq_length", None)

    @max_seq_length.setter
    def max_seq_length(self, value: int | None) -> None:
        self.body[0].max_seq_length = value  # pyright: ignore[reportArgumentType]

    def get_embedding_dimension(self) -> int | None:
        """The embedding's width."""
        for module in reversed(self.body):
            for name in ("get_embedding_dimension", "get_sentence_embedding_dimension"):
                if hasattr(module, name):
                    return getattr(module, name)()
        return None

    get_sentence_embedding_dimension = get_embedding_dimension

    def __getattr__(self, name: str) -> Any:
        """What this module does not have, its first one may: `auto_model`, `processor`, `modalities`."""
        body = self.__dict__.get("_modules", {}).get("body")
        if name != "body" and body is not None and not name.startswith("__"):
            return getattr(body[0], name)
        return super().__getattr__(name)

    # The weights may change.

    def train(self, mode: bool = True) -> Adjusted:
        """Set the mode; what is known of the references ends with training."""
        if mode:
            self._memory.forget()
        return super().train(mode)

    def _apply(self, *args: Any, **kwargs: Any) -> Adjusted:
        # Not in every case: before 5.4 sentence-transformers calls `.to` for every `encode`.
        found = super()._apply(*args, **kwargs)
        self._memory.release(self)
        return found

    # Files.

    def get_config_dict(self) -> dict[str, Any]:
        """The modules' classes, in order."""
        return {"body": [class_path(module) for module in self.body]}

    def save(self, output_path: str, *args: Any, safe_serialization: bool = True, **kwargs: Any) -> None:
        """Write the first module where a plain model has it, and the others beside it."""
        for place, (module, kind) in enumerate(zip(self.body, self.get_config_dict()["body"], strict=True)):
            folder = Path(output_path, stage_folder(place, kind))
            folder.mkdir(parents=True, exist_ok=True)
            module.save(str(folder), safe_serialization=safe_serialization, **kwargs)  # pyright: ignore[reportCallIssue]
        Path(output_path, CONFIG).write_text(json.dumps(self.get_config_dict(), indent=2), encoding="utf-8")

    @classmethod
    def load(
        cls,
        model_name_or_path: str,
        subfolder: str = "",
        token: bool | str | None = None,
        cache_folder: str | None = None,
        revision: str | None = None,
        local_files_only: bool = False,
        **kwargs: Any,
    ) -> Adjusted:
        """Read what `save` wrote, from a folder or from the hub."""
        source: dict[str, Any] = {
            "token": token,
            "cache_folder": cache_folder,
            "revision": revision,
            "local_files_only": local_files_only,
        }
        config = cls.load_config(model_name_or_path, subfolder=subfolder, **source)
        body = []
        for place, kind in enumerate(stage_classes(config)):
            folder = Path(subfolder, stage_folder(place, kind)).as_posix()
            module: Any = import_from_string(kind)
            body.append(module.load(model_name_or_path, subfolder="" if folder == "." else folder, **source, **kwargs))
        return cls(body)

    def on_model_ready(self, model: Any) -> None:
        """Tell the modules that the model they belong to is there."""
        for module in self.body:
            if hasattr(module, "on_model_ready"):
                module.on_model_ready(model)  # pyright: ignore[reportCallIssue]

    __repr__ = nn.Module.__repr__
