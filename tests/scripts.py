"""Texts in many scripts with their words and sentences, and small tokenizers trained on them, for tests/text."""

from functools import cache

from hypothesis import strategies as st
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

from pairlens.text import Span, Unit, token_units

FAMILY = "👨\u200d👩\u200d👧\u200d👦"
FLAG = "🇫🇷"
WAVE = "👋🏽"
KEYCAP = "#\ufe0f\u20e3"

# Each text with its words, in order.
WORDS = [
    ("The coffee here is not good.", ["The", "coffee", "here", "is", "not", "good", "."]),
    ("It isn't state-of-the-art, is it?!", ["It", "isn't", "state-of-the-art", ",", "is", "it", "?!"]),
    (
        "rock'n'roll ’tis dogs’ (e.g. cats)...",
        ["rock'n'roll", "’", "tis", "dogs", "’", "(", "e.g", ".", "cats", ")..."],
    ),
    ("Pay $5 or 5%, 3.14 and 1,000!", ["Pay", "$5", "or", "5", "%,", "3.14", "and", "1,000", "!"]),
    ("C++ and C# by @user #tag a/b x_y", ["C++", "and", "C", "#", "by", "@", "user", "#", "tag", "a/b", "x_y"]),
    ("U.S.A. J. K.", ["U.S.A", ".", "J", ".", "K", "."]),
    ("café cafe\u0301 naïve nai\u0308ve", ["café", "cafe\u0301", "naïve", "nai\u0308ve"]),
    (f"I {FAMILY} love {FLAG} {WAVE}!", ["I", FAMILY, "love", FLAG, WAVE, "!"]),
    (f"{KEYCAP}1 ok\u203c\ufe0f", [KEYCAP, "1", "ok", "\u203c\ufe0f"]),
    ("東京は「日本」の首都。", ["東", "京", "は", "「", "日", "本", "」", "の", "首", "都", "。"]),
    ("ガラス か\u3099 ｶﾞ", ["ガ", "ラ", "ス", "か\u3099", "ｶﾞ"]),
    ("iPhoneを3.5台，ok", ["iPhone", "を", "3.5", "台", "，", "ok"]),
    ("한국어는 띄어 쓴다.", ["한국어는", "띄어", "쓴다", "."]),
    ("ภาษาไทย สวัสดี", ["ภาษาไทย", "สวัสดี"]),
    ("Привет, мир! مرحبا؟ हिन्दी।", ["Привет", ",", "мир", "!", "مرحبا", "؟", "हिन्दी", "।"]),
    ("\ta\n\n b\u00a0c\u3000d ", ["a", "b", "c", "d"]),
    ("--- a -- b", ["---", "a", "--", "b"]),
    ("", []),
    (" \t\n", []),
]

# Each text's sentences, separated by |; the bar is not part of the text.
SENTENCES = [
    "The coffee is bad. |It is cold! |Why?! |Who knows… |Not me.",
    "Mr. Smith and Dr. J. K. Jones met Prof. X in the U.S. Senate. |They spoke.",
    "He moved to the U.S. |He likes it, e.g. The Met, i.e. art, etc. |It is fine.",
    "See Fig. 3 and No. 5, cf. Smith et al. (2020). |No. |I disagree.",
    "I ate an egg. |Then pi is 3.14. |Version 2.0.1 is out at example.com today.",
    '"Why?" he asked. |"No." |(She left.) |“Fine.” |Done',
    "Well... he said. |Wait . . . what? |A man plays a guitar . |A dog barks .",
    "一つ目。|二つ目！？|「三つ目。」|四つ目",
    "A title\n\n|Some wrapped\nprose goes on. |Here\n\n\n|end",
    "hello!\n|how are you?\n|fine",
    "Buy:\n|- milk\n|- eggs and\nham\n|1. First. |Then this.\n|2. Second",
    "Ask Mr.\nJones. |Он ушёл. |Она осталась. |यह है। |ठीक है।",
    "  spaces around.  |\tHere too.  ",
    "one\u2029|two\r\n\r\n|three\r\nfour",
    "no terminator at all",
]

CORPUS = [text for text, _ in WORDS] + [text.replace("|", "") for text in SENTENCES]
# Dense in everything that the rules mention, so that rare neighbours meet.
AWKWARD = st.text(
    st.sampled_from("aAбé1 .,!?…'\"-()%$#\n\t。！「」，東がカ한\u0301\u3099\u200d\ufe0f\u00a0👨👩🏽🇫🇷ß½ﬁ")
    | st.characters(codec="utf-8"),
    max_size=40,
)
SPECIAL = ["[UNK]", "[CLS]", "[SEP]"]


@cache
def tokenizer(name: str) -> Tokenizer:
    """A small tokenizer of the kind named, trained on the texts of this file."""
    frame = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[(token, SPECIAL.index(token)) for token in SPECIAL[1:]]
    )
    if name == "wordpiece":
        made = Tokenizer(models.WordPiece(unk_token="[UNK]"))
        made.normalizer = normalizers.BertNormalizer(lowercase=True)
        made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        trainer = trainers.WordPieceTrainer(vocab_size=250, special_tokens=SPECIAL, show_progress=False)
    elif name == "unigram":
        made = Tokenizer(models.Unigram())
        made.normalizer = normalizers.NFKC()
        made.pre_tokenizer = pre_tokenizers.Metaspace()
        trainer = trainers.UnigramTrainer(
            vocab_size=300, special_tokens=SPECIAL, unk_token="[UNK]", show_progress=False
        )
    else:
        made = Tokenizer(models.BPE())
        made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space="prefix" in name)
        frame = processors.Sequence([processors.ByteLevel(trim_offsets="trim" in name), frame])
        trainer = trainers.BpeTrainer(
            vocab_size=400,
            special_tokens=SPECIAL,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        )
    made.train_from_iterator(CORPUS, trainer)
    made.post_processor = frame
    return made


TOKENIZERS = ["wordpiece", "unigram", "bpe", "bpe-prefix", "bpe-trim", "bpe-prefix-trim"]


def tokens_of(name: str, text: str, prompt: str = "") -> tuple[Unit, ...]:
    encoding = tokenizer(name).encode(prompt + text)
    special = [bool(flag) for flag in encoding.special_tokens_mask]
    return token_units(prompt + text, encoding.tokens, encoding.offsets, special, len(prompt))


def pieces(text: str, spans: list[Span]) -> list[str]:
    return [text[start:end] for start, end in spans]
