"""The module that makes a model an adjusted one: e(x) = e'(x) - e'(r), so that e(r) = 0.

e' is the embedding of a sentence encoder before a final Normalize, and r the reference of x: the same special tokens
and prompt, every other token replaced by padding. The reference depends only on the length and the prompt, so it is
computed once for each length, and encoding costs about as much as with the plain model.
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
from pairlens.adjusted.features import Features, attention_mask, row_keys, take_rows, take_tokens
from pairlens.model.adjusted_layout import CONFIG, stage_classes, stage_folder
from pairlens.model.reference import replaced, special_ends
from pairlens.model.weight_cache import WeightCache

try:
    bases: Any = import_module("sentence_transformers.base.modules")
except ModuleNotFoundError:  # before sentence-transformers 5.4
    bases = import_module("sentence_transformers.models")

LEAD = "reference_lead"
"""The feature that says how many leading tokens of every text the reference keeps; only present with a prompt."""


SOURCE = ("token", "cache_folder", "revision", "local_files_only")
"""The keyword arguments of `load` that say where a model's files are."""


class Adjusted(bases.InputModule):
    """A sentence encoder's modules up to a final Normalize, shifted by the embedding of the reference.

    It is the first of a SentenceTransformer's modules. It tokenizes, trains, saves and loads through the modules that
    it holds. `token_embeddings` are those of the text: only the sentence embedding is shifted.

    Args:
        body: the modules, from the one that tokenizes to the one before a final Normalize.

    Example:
        >>> from sentence_transformers import SentenceTransformer
        >>> from pairlens.model.bundled import offline_model
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
            first.unpad_inputs = False  # Packing all texts into one row would hide their lengths.
        self.forward_kwargs = {name for module in self.body for name in getattr(module, "forward_kwargs", ())}
        self.references = WeightCache()
        self._ends: tuple[Any, tuple[int, int]] | None = None

    # The forward pass.

    def forward(self, features: Features, **kwargs: Any) -> Features:
        """Return the embeddings of a batch of texts, less those of their references.

        Args:
            features: `input_ids` and `attention_mask`, both (texts, tokens), and other inputs of the modules.
            kwargs: keyword arguments of the modules.

        Returns:
            The features with `sentence_embedding`, (texts, dim), and the other outputs of the modules.
        """
        inputs = dict(features)
        ids, mask = inputs["input_ids"], attention_mask(inputs)
        reference = replaced(ids, self.kept(inputs) | ~mask, "padding", self)
        if self.training or torch.is_grad_enabled():
            outputs, shift = self._run_both(inputs, reference, mask, kwargs)
            features.update(outputs)
        else:
            # Before the texts: looking at token ids on a GPU would wait for their forward pass.
            shift = self._cached_shift(inputs, reference, mask, kwargs)
            features = self._run(features, kwargs)
        embedding: Tensor = features["sentence_embedding"]
        # A text that is its own reference has the zero vector exactly, and Normalize keeps it zero.
        same = (reference == ids).all(1, keepdim=True)
        features["sentence_embedding"] = torch.where(same, 0.0, embedding - shift.to(embedding))
        return features

    def kept(self, features: Features) -> Tensor:
        """Return which tokens the reference keeps: special tokens and the prompt's, (texts, tokens) booleans."""
        mask = attention_mask(features)
        before, after = self._special_ends()
        lead = features.get(LEAD, features.get("prompt_length", 0))
        # Padding may be on either side, so places count from a text's first token.
        place = mask.cumsum(1) - 1
        length = mask.sum(1, keepdim=True)
        lead = torch.as_tensor(lead, device=mask.device).reshape(-1, 1)
        return mask & ((place < before) | (place >= length - after) | (place < lead))

    def note_prompt(self, features: Features, prompt: str | None) -> None:
        """Add to the features how many leading tokens of every text belong to the prompt, special tokens included.

        At the end of the prompt, tokens may merge with the text ("query: " and "cat" to "▁query", ":", "▁cat"). So the
        leading tokens are those that a text shares with the tokenization of the prompt alone.
        """
        if not prompt:
            return
        lead: Tensor = self.body[0].preprocess([prompt])["input_ids"][0]  # pyright: ignore[reportCallIssue]
        lead = lead[: len(lead) - self._special_ends()[1]]
        texts = zip(features["input_ids"], attention_mask(features), strict=True)
        rows = [row[tokens][: len(lead)].cpu() for row, tokens in texts]
        shared = [row == lead[: len(row)].to(row) for row in rows]
        features[LEAD] = torch.tensor([int(tokens.cumprod(0).sum()) for tokens in shared])

    def _run(self, features: Features, kwargs: dict[str, Any]) -> Features:
        for module in self.body:
            accepted = getattr(module, "forward_kwargs", ())
            features = module(features, **{name: value for name, value in kwargs.items() if name in accepted})
        return features

    def _run_both(
        self, inputs: Features, reference: Tensor, mask: Tensor, kwargs: dict[str, Any]
    ) -> tuple[Features, Tensor]:
        """Return the texts' features and the references' embeddings, with gradients, from one forward pass.

        The batch holds every distinct reference once.
        """
        keys, count = row_keys(reference, mask), len(reference)
        distinct = {key: row for row, key in reversed(list(enumerate(keys)))}
        places = {key: count + place for place, key in enumerate(distinct)}
        rows = torch.tensor([*range(count), *distinct.values()], device=reference.device)
        batch = take_rows(inputs, rows)
        batch["input_ids"] = torch.cat([inputs["input_ids"], reference[rows[count:]]])
        outputs = self._run(batch, kwargs)
        shift = outputs["sentence_embedding"][torch.tensor([places[key] for key in keys], device=reference.device)]
        texts = torch.arange(count, device=reference.device)
        return {**take_rows(outputs, texts, len(rows)), "input_ids": inputs["input_ids"]}, shift

    def _cached_shift(self, inputs: Features, reference: Tensor, mask: Tensor, kwargs: dict[str, Any]) -> Tensor:
        """Return the references' embeddings, (texts, dim), from the cache if they are known.

        Each is computed alone, so that it does not depend on the rest of the batch.
        """
        self.references.check(self)
        device = reference.device.type
        # What an embedding depends on besides the weights and its tokens.
        settings = (
            str(sorted(kwargs.items())),
            torch.is_autocast_enabled(device),
            torch.get_autocast_dtype(device),
            str(inputs.get("prompt_length")),
        )

        def look_up(row: int, key: bytes) -> Tensor:
            def compute() -> dict[Any, Tensor]:
                features = take_tokens({**inputs, "input_ids": reference}, row, mask)
                return {(key, settings): self._run(features, kwargs)["sentence_embedding"][0]}

            return self.references.look_up((key, settings), compute)

        return torch.stack([look_up(row, key) for row, key in enumerate(row_keys(reference, mask))])

    def _special_ends(self) -> tuple[int, int]:
        """Return how many special tokens the tokenizer puts before and after a text."""
        tokenizer = self.tokenizer
        if self._ends is None or self._ends[0] is not tokenizer:
            self._ends = tokenizer, special_ends(tokenizer)
        return self._ends[1]

    # Tokenizing, which the first module does.

    def preprocess(self, inputs: Sequence[Any], prompt: str | None = None, **kwargs: Any) -> Features:
        """Return a batch's features from its texts."""
        features = self.body[0].preprocess(inputs, prompt=prompt, **kwargs)  # pyright: ignore[reportCallIssue]
        self.note_prompt(features, prompt)
        return features

    def tokenize(self, texts: list[Any], **kwargs: Any) -> Features:
        """Return a batch's features from its texts, for sentence-transformers before 5.4."""
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
        """How many tokens of a text the model takes."""
        return getattr(self.body[0], "max_seq_length", None)

    @max_seq_length.setter
    def max_seq_length(self, value: int | None) -> None:
        self.body[0].max_seq_length = value  # pyright: ignore[reportArgumentType]

    def get_embedding_dimension(self) -> int | None:
        """Return the embedding's dimension."""
        for module in reversed(self.body):
            for name in ("get_embedding_dimension", "get_sentence_embedding_dimension"):
                if hasattr(module, name):
                    return getattr(module, name)()
        return None

    get_sentence_embedding_dimension = get_embedding_dimension

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the first module, such as `auto_model`, `processor` or `modalities`."""
        body = self.__dict__.get("_modules", {}).get("body")
        if name != "body" and body is not None and not name.startswith("__"):
            return getattr(body[0], name)
        return super().__getattr__(name)

    # Changes of the weights.

    def train(self, mode: bool = True) -> Adjusted:
        """Set the mode; training changes the weights, so the references' embeddings are dropped."""
        if mode:
            self.references.forget()
        return super().train(mode)

    def _apply(self, *args: Any, **kwargs: Any) -> Adjusted:
        moved = super()._apply(*args, **kwargs)
        # Only if the weights did move: before 5.4 sentence-transformers calls `.to` for every `encode`.
        self.references.release(self)
        return moved

    # Files.

    def get_config_dict(self) -> dict[str, Any]:
        """Return the modules' classes, in order."""
        return {"body": [class_path(module) for module in self.body]}

    def save(self, output_path: str, *args: Any, safe_serialization: bool = True, **kwargs: Any) -> None:
        """Write the first module into the model's own folder, as a plain model does, and the others below it."""
        for place, (module, kind) in enumerate(zip(self.body, self.get_config_dict()["body"], strict=True)):
            folder = Path(output_path, stage_folder(place, kind))
            folder.mkdir(parents=True, exist_ok=True)
            module.save(str(folder), safe_serialization=safe_serialization, **kwargs)  # pyright: ignore[reportCallIssue]
        Path(output_path, CONFIG).write_text(json.dumps(self.get_config_dict(), indent=2), encoding="utf-8")

    @classmethod
    def load(cls, model_name_or_path: str, subfolder: str = "", **kwargs: Any) -> Adjusted:
        """Load what `save` wrote, from a folder or from the hub; `kwargs` go to every module's own `load`."""
        source = {name: value for name, value in kwargs.items() if name in SOURCE}
        config = cls.load_config(model_name_or_path, subfolder=subfolder, **source)
        body = []
        for place, kind in enumerate(stage_classes(config)):
            folder = Path(subfolder, stage_folder(place, kind)).as_posix()
            module: Any = import_from_string(kind)
            body.append(module.load(model_name_or_path, subfolder="" if folder == "." else folder, **kwargs))
        return cls(body)

    def on_model_ready(self, model: Any) -> None:
        """Pass on to the modules that their model is complete."""
        for module in self.body:
            if hasattr(module, "on_model_ready"):
                module.on_model_ready(model)  # pyright: ignore[reportCallIssue]

    __repr__ = nn.Module.__repr__
