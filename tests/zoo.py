"""Tiny random sentence encoders of every family that pairlens supports, built offline in milliseconds.

Three layers of width 32, with weights large enough that attention and the nonlinearities bend: an integral over such
a model is not trivially exact. Special tokens, templates, padding sides and offsets follow the released models. The
same arguments give the same encoder in every process, each call returns a fresh copy, and the global random state is
not changed.
"""

import copy
import json
import math
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, cast

import torch
import transformers
from sentence_transformers import SentenceTransformer
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from torch import nn

modules: Any
try:
    modules = import_module("sentence_transformers.sentence_transformer.modules")
except ModuleNotFoundError:  # before sentence-transformers 5.4; later releases warn at the old path
    modules = import_module("sentence_transformers.models")

HIDDEN, LAYERS, HEADS, MAX_LENGTH, VOCABULARY = 32, 3, 4, 64, 400

TEXTS = (
    "The coffee here is not good.",
    "This coffee is bad.",
    "I don't think so, do you?",
    "The naïve café owner (re-opened) yesterday!",
    "Die Züge fahren heute nicht; morgen schon.",
    "東京は大きい都市です。",
    "Great service 🙂 and a rocket 🚀",
    "A man is playing the guitar. Nobody listens.",
)

CORPUS = """\
The coffee here is very good. This tea is not bad at all. The food was cold and the service was slow.
Not all coffee is good coffee. The coffee was not hot, and the tea is not here yet. I do not drink coffee.
I don't like the music they're playing. You can't open the door without a key. It's raining again.
A man is playing a guitar. A woman is slicing an onion. Two dogs run through the snow. Who is there?
The train to the city leaves at nine. My flight was delayed by three hours. We missed the last bus.
Nobody was listening to the speaker. Everybody listens when she sings. He sings well, doesn't he?
The owner re-opened the shop yesterday! Tomorrow the shop will be closed. Prices rose by 12.5 percent.
Is the museum open today? The old museum is closed on Mondays. Children play in the park. I think so; do you?
She reads a book about the war. This book (the second one) is a great read. What a great show 🙂
The naïve hero orders a crème brûlée in a café. El niño come piña. Good morning 🙂 and good night 😴
Die Katze schläft auf dem Sofa. Heute fahren keine Züge, morgen schon. Der Kaffee ist nicht gut.
東京は大きい都市です。今日は天気がいい。北京是中国的首都。""".splitlines()


@dataclass(frozen=True)
class Family:
    """The tokenizer and configuration of a family, as in its released models."""

    model: str  # the class in transformers
    pieces: str  # which of the recipes below
    special: dict[str, str]  # role to token; the ids follow this order, from 0
    template: str
    config: dict[str, Any]
    token_types: bool = False
    pooling: str = "mean"
    padding_side: str = "right"
    scale: float = 0.25  # of the weights


_BERT = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}
_ROBERTA = {"bos": "<s>", "cls": "<s>", "pad": "<pad>", "eos": "</s>", "sep": "</s>", "unk": "<unk>", "mask": "<mask>"}
_ALBERT = {"pad": "<pad>", "unk": "<unk>", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}
_DEBERTA = {"pad": "[PAD]", "cls": "[CLS]", "sep": "[SEP]", "unk": "[UNK]", "mask": "[MASK]"}
_T5 = {"pad": "<pad>", "eos": "</s>", "unk": "<unk>"}
# As in Qwen3-Embedding, every text ends in <|endoftext|>, which is the padding token, not the tokenizer's eos token.
_QWEN = {"pad": "<|endoftext|>", "eos": "<|im_end|>"}
_GEMMA = {"pad": "<pad>", "eos": "<eos>", "bos": "<bos>", "unk": "<unk>", "mask": "<mask>"}

_BARE = {"hidden_size": HIDDEN, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "intermediate_size": 48}
_SIZES = _BARE | {"max_position_embeddings": MAX_LENGTH}
_SHIFTED = _BARE | {"max_position_embeddings": MAX_LENGTH + 2}  # RoBERTa's positions begin behind the padding id
_NARROW = _SIZES | {"embedding_size": 16}
_GROUPED = _SIZES | {"num_key_value_heads": 2, "head_dim": HIDDEN // HEADS}
_DISTILBERT = {"dim": HIDDEN, "n_layers": LAYERS, "n_heads": HEADS, "hidden_dim": 48}
_RELATIVE = {"relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_buckets": 8, "share_att_key": True}
_DEBERTA_V3 = _SIZES | _RELATIVE | {"norm_rel_ebd": "layer_norm", "position_biased_input": False, "type_vocab_size": 0}
_T5_SIZES = {"d_model": HIDDEN, "num_layers": LAYERS, "num_heads": HEADS, "d_kv": HIDDEN // HEADS, "d_ff": 48}
# Windows shorter than the texts; one layer of the three sees everything.
_MODERN = _SIZES | {"local_attention": 8, "bos_token_id": 2, "eos_token_id": 3}
_GEMMA3 = _GROUPED | {"sliding_window": 8, "sliding_window_pattern": 2, "query_pre_attn_scalar": HIDDEN // HEADS}
_BIDIRECTIONAL = _GEMMA3 | {"use_bidirectional_attention": True}

_TABLE = {
    "bert": Family("BertModel", "wordpiece", _BERT, "[CLS] $A [SEP]", _SIZES, True),
    "roberta": Family("RobertaModel", "bytes-trimmed", _ROBERTA, "<s> $A </s>", _SHIFTED),
    "xlm-roberta": Family("XLMRobertaModel", "unigram", _ROBERTA, "<s> $A </s>", _SHIFTED),
    "mpnet": Family("MPNetModel", "wordpiece", _ROBERTA, "<s> $A </s>", _SHIFTED),
    "electra": Family("ElectraModel", "wordpiece", _BERT, "[CLS] $A [SEP]", _NARROW, True),
    "distilbert": Family("DistilBertModel", "wordpiece", _BERT, "[CLS] $A [SEP]", _DISTILBERT),
    "deberta-v2": Family("DebertaV2Model", "unigram", _DEBERTA, "[CLS] $A [SEP]", _DEBERTA_V3, True),
    "albert": Family("AlbertModel", "unigram-folded", _ALBERT, "[CLS] $A [SEP]", _NARROW, True),
    "modernbert": Family("ModernBertModel", "bytes", _BERT, "[CLS] $A [SEP]", _MODERN),
    "nomic_bert": Family("NomicBertModel", "wordpiece", _BERT, "[CLS] $A [SEP]", _SIZES, True),
    "t5": Family("T5EncoderModel", "unigram", _T5, "$A </s>", _T5_SIZES, scale=0.15),  # attention is unscaled
    "qwen3": Family("Qwen3Model", "bytes", _QWEN, "$A <|endoftext|>", _GROUPED, False, "lasttoken", "left"),
    "gemma3": Family("Gemma3TextModel", "bpe", _GEMMA, "<bos> $A <eos>", _GEMMA3, False, "lasttoken", "left"),
    "embeddinggemma": Family("Gemma3TextModel", "bpe", _GEMMA, "<bos> $A <eos>", _BIDIRECTIONAL),
}
# An older transformers has no NomicBertModel.
FAMILIES: tuple[str, ...] = tuple(name for name, family in _TABLE.items() if family.model in dir(transformers))

# Normalizer, pre-tokenizer and decoder.
_SPACES = normalizers.Replace(Regex(" {2,}"), " ")
_FOLDED = [normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase(), _SPACES]
_BYTES = (normalizers.NFC(), pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel())
_RECIPES: dict[str, tuple[Any, Any, Any]] = {
    "wordpiece": (normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer(), decoders.WordPiece()),
    "bytes": _BYTES,
    "bytes-trimmed": _BYTES,
    "bpe": (normalizers.Replace(" ", "▁"), pre_tokenizers.Split("▁", "merged_with_next"), decoders.Replace("▁", " ")),
    "unigram": (normalizers.Sequence([normalizers.NFKC(), _SPACES]), pre_tokenizers.Metaspace(), decoders.Metaspace()),
    "unigram-folded": (normalizers.Sequence(_FOLDED), pre_tokenizers.Metaspace(), decoders.Metaspace()),
}


def _count_pieces(normalizer: Any, splitter: Any, continued: str) -> Counter[str]:
    """Return the characters of the corpus and the substrings of its words that recur and cover most of it, with counts.

    The trainers of `tokenizers` for WordPiece and Unigram depend on the order of a hash map: they return another
    vocabulary in every process.
    """
    counts: Counter[str] = Counter()
    for line in CORPUS:
        for word, _ in splitter.pre_tokenize_str(normalizer.normalize_str(line)):
            for start in range(len(word)):
                counts.update((continued if start else "") + word[start:end] for end in range(start + 1, len(word) + 1))
                counts.update([word[start], continued + word[start]])
    characters = [piece for piece in counts if len(piece.removeprefix(continued)) == 1]
    recurring = {piece for piece in counts.keys() - characters if counts[piece] > 1}
    by_use = sorted(recurring, key=lambda piece: (-counts[piece] * len(piece), piece))
    return Counter({piece: counts[piece] for piece in sorted(characters) + by_use[: VOCABULARY - len(characters)]})


@cache
def _trained(family: str) -> Tokenizer:
    spec = _TABLE[family]
    special = list(dict.fromkeys(spec.special.values()))
    tokenizer = Tokenizer(models.BPE())
    normalizer, splitter, decoder = _RECIPES[spec.pieces]
    tokenizer.normalizer, tokenizer.pre_tokenizer, tokenizer.decoder = normalizer, splitter, decoder
    if spec.pieces == "wordpiece":
        pieces = special + list(_count_pieces(normalizer, splitter, "##"))
        tokenizer.model = models.WordPiece({piece: i for i, piece in enumerate(pieces)}, unk_token=spec.special["unk"])
    elif spec.pieces.startswith("unigram"):
        counts = _count_pieces(normalizer, splitter, "")
        scored = [(piece, math.log(count / counts.total())) for piece, count in counts.items()]
        unknown = special.index(spec.special["unk"])
        tokenizer.model = models.Unigram([(token, 0.0) for token in special] + scored, unk_id=unknown)
    else:
        alphabet = sorted(pre_tokenizers.ByteLevel.alphabet()) if spec.pieces.startswith("bytes") else []
        options: dict[str, Any] = {"vocab_size": VOCABULARY, "special_tokens": special, "initial_alphabet": alphabet}
        tokenizer.model = models.BPE(unk_token=None if alphabet else spec.special["unk"])
        tokenizer.train_from_iterator(CORPUS, trainers.BpeTrainer(show_progress=False, **options))
    tokenizer.add_special_tokens(special)
    if spec.pieces == "bytes-trimmed":  # RoBERTa's offsets leave out the space that its pieces begin with
        tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    else:
        ends: Any = [(token, special.index(token)) for token in spec.template.split() if token != "$A"]
        tokenizer.post_processor = processors.TemplateProcessing(single=spec.template, special_tokens=ends)
    return tokenizer


def tokenizer(family: str) -> transformers.PreTrainedTokenizerFast:
    """Return the family's tokenizer with its special tokens declared."""
    spec = _TABLE[family]
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer.from_str(_trained(family).to_str()),
        model_max_length=MAX_LENGTH,
        padding_side=spec.padding_side,
        model_input_names=["input_ids", *(["token_type_ids"] if spec.token_types else []), "attention_mask"],
        **{f"{role}_token": token for role, token in spec.special.items()},
    )


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


def _randomize(module: nn.Module, scale: float) -> None:
    """Draw matrices from a normal distribution, norms around one and biases around zero."""
    for parameter in module.parameters():
        noise = torch.randn(parameter.shape)
        parameter.data = scale * noise if parameter.ndim > 1 else parameter.data + 0.2 * noise


@cache
def _transformer(family: str, seed: int, scale: float, overrides: str) -> nn.Module:
    pieces = tokenizer(family)
    ids = {f"{role}_token_id": pieces.convert_tokens_to_ids(token) for role, token in _TABLE[family].special.items()}
    model_class = getattr(transformers, _TABLE[family].model)
    config = model_class.config_class(vocab_size=len(pieces), **_TABLE[family].config | ids | json.loads(overrides))
    with _seeded(seed), tempfile.TemporaryDirectory() as folder:
        model = model_class(config)
        _randomize(model, scale)
        model.save_pretrained(folder)
        pieces.save_pretrained(folder)
        module = modules.Transformer(folder)
    module.auto_model.config.name_or_path = module.tokenizer.name_or_path = f"zoo/{family}"
    return module.eval()


def transformer(family: str = "bert", *, seed: int = 0, scale: float | None = None, **config: Any) -> Any:
    """Return a Transformer module of the family; `config` overrides its configuration, `scale` the size of weights."""
    return copy.deepcopy(_transformer(family, seed, scale or _TABLE[family].scale, json.dumps(config, sort_keys=True)))


def encoder(
    family: str = "bert",
    *,
    pooling: str | tuple[str, ...] | None = None,
    normalize: bool = True,
    dense: int | None = None,
    layer_norm: bool = False,
    prompts: dict[str, str] | None = None,
    default_prompt_name: str | None = None,
    include_prompt: bool = True,
    similarity: str | None = None,
    truncate_dim: int | None = None,
    seed: int = 0,
    scale: float | None = None,
    **config: Any,
) -> SentenceTransformer:
    """Return a sentence encoder of the family: transformer, pooling (None: the family's own), then given modules."""
    first = transformer(family, seed=seed, scale=scale, **config)
    hidden = first.auto_model.config.hidden_size
    pool = modules.Pooling(hidden, pooling or _TABLE[family].pooling, include_prompt=include_prompt)
    width = pool.pooling_output_dimension
    with _seeded(seed + 1):
        behind = [modules.Dense(width, dense)] if dense else []
        behind += [modules.LayerNorm(dense or width)] if layer_norm else []
        for stage in behind:
            _randomize(stage, scale or _TABLE[family].scale)
    behind += [modules.Normalize()] if normalize else []
    return SentenceTransformer(
        modules=[first, pool, *behind],
        device="cpu",
        prompts=prompts,
        default_prompt_name=default_prompt_name,
        similarity_fn_name=cast(Any, similarity),
        truncate_dim=truncate_dim,
    ).eval()


def static(*, normalize: bool = False, seed: int = 0) -> SentenceTransformer:
    """Return a model of static word-piece vectors."""
    pieces = Tokenizer.from_str(_trained("bert").to_str())  # a copy: StaticEmbedding changes its tokenizer
    with _seeded(seed):
        bag = modules.StaticEmbedding(pieces, embedding_weights=torch.randn(pieces.get_vocab_size(), HIDDEN))
    return SentenceTransformer(modules=[bag, modules.Normalize()] if normalize else [bag], device="cpu").eval()


def router(query: str = "static", document: str = "bert", normalize: bool = True, seed: int = 0) -> SentenceTransformer:
    """Return a model with one encoder for queries and another for documents; each a family or "static"."""

    def stages(name: str, seed: int) -> list[Any]:
        return list(static(seed=seed) if name == "static" else encoder(name, normalize=False, seed=seed))

    routes = modules.Router.for_query_document(stages(query, seed), stages(document, seed + 1))
    return SentenceTransformer(modules=[routes, modules.Normalize()] if normalize else [routes], device="cpu").eval()


def peft(family: str = "bert", *, wrapped: bool = False, seed: int = 0, **options: Any) -> SentenceTransformer:
    """Return an encoder with an active LoRA adapter in its layers, or around the model as a `PeftModel`."""
    from peft import LoraConfig, get_peft_model

    model = encoder(family, seed=seed, **options)
    adapter = LoraConfig(r=2, lora_alpha=4, target_modules=["query", "value"])
    with _seeded(seed + 2):
        if wrapped:
            first = cast(Any, model[0])
            name = "model" if "model" in dict(first.named_children()) else "auto_model"  # since 5.4, before
            setattr(first, name, get_peft_model(first.auto_model, adapter))
        else:
            model.add_adapter(adapter)
        for name, parameter in model.named_parameters():
            if "lora_" in name:  # B starts at zero: the adapter would have no effect
                nn.init.normal_(parameter, std=0.3)
    return model.eval()
