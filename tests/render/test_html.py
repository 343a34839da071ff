"""The saved page, without a browser; tests/render/picture opens it in one."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from importlib.resources import files

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from explanations import make
from hostile import A, B
from pairlens import InputError
from pairlens.attribution.explanation import Explanation
from pairlens.cli import app
from pairlens.render import html
from pictures import tokens

TAGS = ["html", "head", "meta", "meta", "meta", "meta", "title", "style", "body", "main", "pre"] + ["script"] * 3
nasty = st.text(
    st.one_of(st.characters(), st.sampled_from("<>&\"'/!-`\\\u2028\u2029\u202e\u200b\x00")), max_size=40
) | st.sampled_from(["</script>", "<!--<script>", "]]>", '"><img src=x onerror=alert(1)>', "\\u003c", "&lt;"])


@pytest.fixture(scope="module")
def coffee() -> Explanation:
    return tokens()


class Parsed(HTMLParser):
    """The elements and attributes of a page, and the content of its scripts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.scripts: list[str] = []
        self.open = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}
        self.open = tag
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data: str) -> None:
        if self.open == "script":
            self.scripts[-1] += data

    def handle_endtag(self, tag: str) -> None:
        self.open = ""


@settings(max_examples=80, deadline=None)
@given(nasty, nasty, nasty, nasty)
def test_no_text_becomes_markup(text_a, text_b, label, title):
    e = make(text_a, text_b)
    page = html.document({label: e}, title=title)
    parsed = Parsed(page)
    assert parsed.tags == TAGS
    assert parsed.attributes == {"lang", "charset", "http-equiv", "content", "name", "class", "id", "type"}
    data, options, script = parsed.scripts
    assert json.loads(data) == html.payload({label: e})
    assert json.loads(options)["title"] == title
    assert not set("<>&\u2028\u2029") & set(data + options)
    assert script == html.asset("picture.js")


def test_policy_allows_only_the_script_and_the_style_of_the_page(coffee):
    page = html.document(coffee)
    (policy,) = re.findall(r'Security-Policy" content="([^"]+)"', page)
    (style,) = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    hashes = [
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (Parsed(page).scripts[2], style)
    ]
    assert policy == (
        f"default-src 'none'; script-src 'sha256-{hashes[0]}'; style-src 'sha256-{hashes[1]}'; img-src data:"
    )


def test_script_contains_every_file_of_picture():
    folder = files("pairlens.render").joinpath("picture")
    sources = {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()}
    assert sources.pop("picture.css") == html.asset("picture.css")
    assert all(source in html.asset("picture.js") for source in sources.values())
    with pytest.raises(InputError, match="unknown asset"):
        html.asset("show.js")


def test_script_and_style_stay_below_100_kb(coffee):
    assert len(html.document(coffee)) - len(json.dumps(html.payload(coffee))) < 100_000


def test_payload_has_the_level_of_the_explanation_and_coarser_ones(coffee):
    def names(e: Explanation) -> list[str]:
        payload = html.payload(e)
        json.dumps(payload, allow_nan=False)
        return [level["name"] for level in payload["views"][0]["levels"]]

    assert names(coffee) == ["token", "word", "sentence"]
    assert names(coffee.at("word")) == ["word", "sentence"]
    assert names(coffee.at([(4, 10)])) == ["span"]
    assert names(coffee.at(("word", "sentence"))) == ["span"]
    view = html.payload({"x": coffee})["views"][0]
    assert view["label"] == "x"
    assert view["levels"][1]["matrix"] == pytest.approx(coffee.at("word").matrix, rel=1e-8)
    assert view["levels"][1]["units_a"][2] == {"text": "coffee", "start": 4, "end": 10, "kind": "text"}


def test_save_writes_the_page_and_refuses_other_files(coffee, tmp_path):
    assert coffee.save(tmp_path / "why.HTML").read_text(encoding="utf-8") == html.document(coffee)
    assert [path.name for path in tmp_path.iterdir()] == ["why.HTML"], "nothing is left beside it"
    with pytest.raises(InputError, match="folder"):
        coffee.save(tmp_path / "nowhere" / "why.html")
    with pytest.raises(InputError, match=r"unknown file suffix '.htm'. Did you mean '.html'"):
        coffee.save(tmp_path / "why.htm")
    with pytest.raises(InputError, match="unknown file suffix"):
        html.save(coffee, tmp_path / "why.json")
    with pytest.raises(InputError, match="unknown arrangement 'grid'"):
        html.document(coffee, arrange="grid")
    with pytest.raises(InputError, match="empty"):
        html.document({})


def test_command_saves_the_picture(tmp_path, monkeypatch, minilm):
    monkeypatch.setattr("pairlens.cli.options.Request.load", lambda request: minilm)
    path = tmp_path / "why.html"
    done = CliRunner().invoke(app, ["explain", A, B, "--save", str(path)])
    assert done.exit_code == 0, done.output
    (stored,) = json.loads(Parsed(path.read_text(encoding="utf-8")).scripts[0])["views"]
    assert (stored["text_a"], stored["text_b"]) == (A, B)
    assert [level["name"] for level in stored["levels"]] == ["word", "sentence"]


def test_a_zoomed_explanation_has_its_sentences_as_a_coarser_level(zoomed):
    zoom, sentences = html.payload(zoomed)["views"][0]["levels"]
    assert (zoom["name"], zoom["noun"], sentences["name"]) == ("zoom", "word or sentence", "sentence")
    assert [unit["text"] for unit in sentences["units_b"]] == [
        "[CLS]",
        "We left early.",
        "The coffee here is not good.",
    ]
    assert len(sentences["units_a"]) == len(zoom["units_a"]), "the other text keeps its words"
    assert sentences["matrix"][2][2] == pytest.approx(0.3 - 0.1), "the words and the row of the sentence"
    assert sentences["entry_error"][2][2] == pytest.approx(0.01), "words add no error to their sentence's"
    own = zoom["units_b"][-1]
    assert own["parts"] == list(range(2, 9))
    assert own["removes"] == list(range(2, 10))
