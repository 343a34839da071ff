"""A text as the model reads it: token ids, and where in the caller's text each token stands."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from pairlens.errors import InputError, ModelError
from pairlens.text import Unit, align, token_units
from pairlens.text.alignment import tokenized_forms, tokens_left


@dataclass(frozen=True)
class Text:
    """One text, tokenized: `features` is what the model takes, `units` has one entry a token."""

    text: str
    role: str | None
    prompt: str
    features: dict[str, Any]
    tokens: tuple[str, ...]
    units: tuple[Unit, ...]
    truncated: bool
    kept: tuple[bool, ...]
    """For every token, whether it also stands in the reference: special tokens and the prompt's."""

    def features_with(self, ids: Tensor) -> dict[str, Any]:
        """What the model takes, with these token ids, (tokens,)."""
        return {**self.features, "input_ids": ids[None]}

    def replaced(self, ids: Tensor) -> Text:
        """The same to a model, with these token ids, (tokens,)."""
        return replace(self, features=self.features_with(ids))


def batch(features: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What the model takes for texts of one length together."""
    return {
        name: torch.cat([text[name] for text in features]) if isinstance(own, Tensor) else own
        for name, own in features[0].items()
    }


def check_text(text: object) -> None:
    """Raise unless this is a text with something in it."""
    if not isinstance(text, str):
        raise InputError(f"expected a text, and got {type(text).__name__}: {text!r:.60}.")
    if not text.strip():
        raise InputError(f"the text is empty ({text!r}); there is nothing to explain in it.")
    broken = next((i for i, char in enumerate(text) if "\ud800" <= char <= "\udfff"), None)
    if broken is not None:
        raise InputError(
            f"character {broken} of the text {text!r:.60} is half of a surrogate pair, which no tokenizer reads. "
            "Mend it with text.encode('utf-16', 'surrogatepass').decode('utf-16', 'replace')."
        )


class Reader:
    """Reads texts with the tokenizer of one input module."""

    def __init__(self, module: nn.Module, role: str | None, adjusted: Any = None) -> None:
        self.module: Any = module
        # An adjusted model's own module says what its reference keeps.
        self.adjusted = adjusted
        self.role = role
        self.tokenizer: Any = getattr(module, "tokenizer", None)
        if self.tokenizer is None:
            raise ModelError(f"the model's input module, {type(module).__name__}, has no tokenizer.")
        if "message" in getattr(module, "modality_config", {}):
            raise ModelError("the model reads texts through a chat template, which pairlens cannot follow yet.")

    def read(self, text: str, prompt: str) -> Text:
        """Tokenize a text as `SentenceTransformer.encode` does, prompt in front."""
        check_text(text)
        joined = prompt + text
        features = self._tokenize(joined)
        ids = features["input_ids"].flatten().tolist()
        tokens, offsets, special, truncated = self._places(joined, ids)
        units = token_units(joined, tokens, offsets, special, len(prompt))
        if not any(unit.kind == "text" for unit in units):
            raise InputError(
                f"no token of the text {text!r:.60} is left: the model reads it as {' '.join(tokens) or 'nothing'}."
            )
        if prompt and features["input_ids"].ndim == 2:
            features["prompt_length"] = self._prompt_length(prompt)
        kept = tuple(unit.kind != "text" for unit in units)
        if self.adjusted is not None:
            noted = dict(features)
            if hasattr(self.module, "preprocess"):  # before sentence-transformers 5.4 modules are not told the prompt
                self.adjusted.note_prompt(noted, prompt)
            kept = tuple(self.adjusted.kept(noted)[0].tolist())
        return Text(text, self.role, prompt, features, tuple(tokens), units, truncated, kept)

    def _tokenize(self, text: str) -> dict[str, Any]:
        if hasattr(self.module, "preprocess"):
            extra = {} if self.role is None else {"task": self.role}
            features = dict(self.module.preprocess([text], **extra))
        else:
            features = dict(self.module.tokenize([text]))
        mask = features.get("attention_mask")
        if isinstance(mask, Tensor) and not bool(mask.all()):
            # A tokenizer that always pads: the padding carries nothing, so it goes.
            keep = mask[0].bool()
            features = {
                name: value[:, keep] if isinstance(value, Tensor) and value.shape == mask.shape else value
                for name, value in features.items()
            }
        return features

    def _prompt_length(self, prompt: str) -> int:
        """Tokens of the prompt that pooling may leave out, counted as sentence-transformers counts them."""
        ids = self._tokenize(prompt)["input_ids"].flatten().tolist()
        return len(ids) - int(ids[-1] in getattr(self.tokenizer, "all_special_ids", ()))

    def _places(self, text: str, ids: list[int]) -> tuple[list[str], list[tuple[int, int]], list[bool], bool]:
        """Token strings, their characters, which are special, and whether the text was cut short."""
        for candidate, start in tokenized_forms(text):
            found = self._encode(candidate)
            if found is None:
                break
            full, offsets, special, tokens = found
            kept = tokens_left(ids, full, special, getattr(self.tokenizer, "truncation_side", "right"))
            if kept is not None:
                places = [(offsets[i][0] + start, offsets[i][1] + start) for i in kept]
                return [tokens[i] for i in kept], places, [special[i] for i in kept], len(full) > len(ids)
        tokens = list(self.tokenizer.convert_ids_to_tokens(ids))
        special = [i in set(self.tokenizer.all_special_ids) for i in ids]
        words = [token for token, is_special in zip(tokens, special, strict=True) if not is_special]
        inner: Iterator[tuple[int, int]] = iter(align(text, words))
        offsets = [(0, 0) if is_special else next(inner) for is_special in special]
        return tokens, offsets, special, len(self.tokenizer.tokenize(text)) > len(words)

    def _encode(self, text: str) -> tuple[list[int], list[tuple[int, int]], list[bool], list[str]] | None:
        """Ids, offsets, special flags and tokens of the whole text, or None where the tokenizer gives no offsets."""
        if hasattr(self.tokenizer, "encode_batch") and not hasattr(self.tokenizer, "convert_ids_to_tokens"):
            found = self.tokenizer.encode(text, add_special_tokens=False)
            return found.ids, found.offsets, [bool(flag) for flag in found.special_tokens_mask], found.tokens
        if not getattr(self.tokenizer, "is_fast", False):
            return None
        # Not by its level: setting one makes every logger of the process forget what it knows.
        logger = logging.getLogger("transformers.tokenization_utils_base")
        logger.addFilter(_grave)
        try:
            found = self.tokenizer(
                text, truncation=False, padding=False, return_offsets_mapping=True, return_special_tokens_mask=True
            )
        finally:
            logger.removeFilter(_grave)
        special = [bool(flag) for flag in found["special_tokens_mask"]]
        offsets = [(int(a), int(b)) for a, b in found["offset_mapping"]]
        return found["input_ids"], offsets, special, list(self.tokenizer.convert_ids_to_tokens(found["input_ids"]))


def _grave(record: logging.LogRecord) -> bool:
    return record.levelno >= logging.ERROR
