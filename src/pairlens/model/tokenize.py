"""Tokenize texts as the model does, and find the characters of every token in the caller's text."""

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
    """One tokenized text.

    Attributes:
        text: the caller's text.
        role: "query", "document" or None.
        prompt: the characters put before it.
        features: the model's input, a batch of one.
        tokens: the tokens' strings.
        units: one unit per token.
        truncated: whether the text is longer than the model takes.
        kept: for every token, whether the reference keeps it: special tokens and the prompt's.
        unknown: the words, or parts of words, that the tokenizer does not know.
        meaningless: whether it knows no word of the text.
    """

    text: str
    role: str | None
    prompt: str
    features: dict[str, Any]
    tokens: tuple[str, ...]
    units: tuple[Unit, ...]
    truncated: bool
    kept: tuple[bool, ...]
    unknown: tuple[str, ...] = ()
    meaningless: bool = False

    def features_with(self, ids: Tensor) -> dict[str, Any]:
        """Return the model's input with other token ids, (tokens,)."""
        return {**self.features, "input_ids": ids[None]}

    def replaced(self, ids: Tensor) -> Text:
        """Return the text with other token ids, (tokens,), in its features."""
        return replace(self, features=self.features_with(ids))


def batch(features: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the model's input for several texts of one length."""
    return {
        name: torch.cat([text[name] for text in features]) if isinstance(value, Tensor) else value
        for name, value in features[0].items()
    }


def check_text(text: object) -> None:
    """Raise unless this is a text that is not blank and can be encoded."""
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
    """Reads texts with the tokenizer of one input module.

    Args:
        module: the input module.
        role: the texts' role.
        adjusted: the adjusting module, if there is one: it knows which tokens its reference keeps.
    """

    def __init__(self, module: nn.Module, role: str | None, adjusted: Any = None) -> None:
        self.module: Any = module
        self.adjusted = adjusted
        self.role = role
        self.tokenizer: Any = getattr(module, "tokenizer", None)
        if self.tokenizer is None:
            raise ModelError(f"the model's input module, {type(module).__name__}, has no tokenizer.")
        if "message" in getattr(module, "modality_config", {}):
            raise ModelError("the model reads texts through a chat template, which pairlens cannot follow yet.")

    def read(self, text: str, prompt: str) -> Text:
        """Return the text as `SentenceTransformer.encode` tokenizes it, with the prompt before it."""
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
            if hasattr(self.module, "preprocess"):  # before sentence-transformers 5.4 modules do not get the prompt
                self.adjusted.note_prompt(noted, prompt)
            kept = tuple(self.adjusted.kept(noted)[0].tolist())
        unknown, meaningless = self._unknown(units, ids)
        return Text(text, self.role, prompt, features, tuple(tokens), units, truncated, kept, unknown, meaningless)

    def _unknown(self, units: Sequence[Unit], ids: Sequence[int]) -> tuple[tuple[str, ...], bool]:
        """Return the words that the tokenizer does not know, and whether it knows no other word, only signs."""
        unknown = getattr(self.tokenizer, "unk_token_id", None)
        if unknown not in ids:
            return (), False
        texts = [(unit, token) for unit, token in zip(units, ids, strict=True) if unit.kind == "text"]
        words = tuple(dict.fromkeys(unit.text.strip() for unit, token in texts if token == unknown))
        known = any(token != unknown and any(char.isalnum() for char in unit.text) for unit, token in texts)
        return words, bool(words) and not known

    def _tokenize(self, text: str) -> dict[str, Any]:
        """Return the model's input for one text, without padding."""
        if hasattr(self.module, "preprocess"):
            extra = {} if self.role is None else {"task": self.role}
            features = dict(self.module.preprocess([text], **extra))
        else:
            features = dict(self.module.tokenize([text]))
        mask = features.get("attention_mask")
        if isinstance(mask, Tensor) and not bool(mask.all()):
            # Some tokenizers always pad.
            keep = mask[0].bool()
            features = {
                name: value[:, keep] if isinstance(value, Tensor) and value.shape == mask.shape else value
                for name, value in features.items()
            }
        return features

    def _prompt_length(self, prompt: str) -> int:
        """Return the number of prompt tokens that pooling may leave out, counted as in sentence-transformers."""
        ids = self._tokenize(prompt)["input_ids"].flatten().tolist()
        return len(ids) - int(ids[-1] in getattr(self.tokenizer, "all_special_ids", ()))

    def _places(self, text: str, ids: list[int]) -> tuple[list[str], list[tuple[int, int]], list[bool], bool]:
        """Return the tokens' strings, their characters, which are special, and whether the text was truncated."""
        for candidate, start in tokenized_forms(text):
            encoding = self._encode(candidate)
            if encoding is None:
                break
            full, offsets, special, tokens = encoding
            left = tokens_left(ids, full, special, getattr(self.tokenizer, "truncation_side", "right"))
            if left is not None:
                places = [(offsets[i][0] + start, offsets[i][1] + start) for i in left]
                return [tokens[i] for i in left], places, [special[i] for i in left], len(full) > len(ids)
        tokens = list(self.tokenizer.convert_ids_to_tokens(ids))
        special = [i in set(self.tokenizer.all_special_ids) for i in ids]
        words = [token for token, is_special in zip(tokens, special, strict=True) if not is_special]
        inner: Iterator[tuple[int, int]] = iter(align(text, words))
        offsets = [(0, 0) if is_special else next(inner) for is_special in special]
        return tokens, offsets, special, len(self.tokenizer.tokenize(text)) > len(words)

    def _encode(self, text: str) -> tuple[list[int], list[tuple[int, int]], list[bool], list[str]] | None:
        """Return ids, offsets, special flags and tokens of the whole text, or None for a tokenizer without offsets."""
        if hasattr(self.tokenizer, "encode_batch") and not hasattr(self.tokenizer, "convert_ids_to_tokens"):
            encoding = self.tokenizer.encode(text, add_special_tokens=False)
            special = [bool(flag) for flag in encoding.special_tokens_mask]
            return encoding.ids, encoding.offsets, special, encoding.tokens
        if not getattr(self.tokenizer, "is_fast", False):
            return None
        # A filter, because setting a level clears the caches of all loggers of the process.
        logger = logging.getLogger("transformers.tokenization_utils_base")
        logger.addFilter(_is_error)
        try:
            encoding = self.tokenizer(
                text, truncation=False, padding=False, return_offsets_mapping=True, return_special_tokens_mask=True
            )
        finally:
            logger.removeFilter(_is_error)
        ids = encoding["input_ids"]
        special = [bool(flag) for flag in encoding["special_tokens_mask"]]
        offsets = [(int(start), int(end)) for start, end in encoding["offset_mapping"]]
        return ids, offsets, special, list(self.tokenizer.convert_ids_to_tokens(ids))


def _is_error(record: logging.LogRecord) -> bool:
    return record.levelno >= logging.ERROR
