"""Draw docs/images/architecture.svg, the map of the rooms: python docs/make_map.py."""

from __future__ import annotations

from pathlib import Path
from xml.sax.saxutils import escape

# From the top: a room imports only rooms below it, or to its left in the same row.
ROWS = (
    ("Entry points", (("web", "pairlens serve"), ("cli", "one file per command"))),
    (
        "Applications",
        (("adjusted", "train exact models"), ("corpus", "index and search"), ("study", "papers' studies, judge")),
    ),
    ("Output", (("io", "files and tables"), ("render", "terminal, page, plots"))),
    ("Entry point in Python", (("lens.py", "Lens"), ("functional.py", "decompose any function"))),
    ("Explanations", (("attribution", "batches, matrix, base, effects, gap"),)),
    ("Contributions", (("methods", "shapley, fade, integrated_jacobian, occlusion, static"),)),
    ("The encoder", (("model", "load, tokenize, hidden states, references, deletions"),)),
    ("Integrals and subsets", (("quadrature", "rules, plans, paths"), ("subsets", "sampling, kriging"))),
    ("Texts and derivatives", (("text", "units, words, sentences"), ("autodiff", "many tangents at once"))),
    ("Base", (("errors.py", ""), ("shapes.py", ""), ("progress.py", ""), ("linalg.py", ""))),
)
WIDTH, LABEL, ROW, GAP, TOP = 900, 200, 54, 10, 40
INK, FAINT = "#1f2933", "#52606d"


def text(x: float, y: float, words: str, style: str) -> str:
    """One line of text."""
    return f'<text x="{x:g}" y="{y:g}" {style}>{escape(words)}</text>'


def box(x: float, y: float, width: float, name: str, about: str) -> list[str]:
    """One room: its name and what it does."""
    middle = x + width / 2
    lines = [
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{ROW}" rx="6" fill="#e6f0fa" stroke="#2f6db0"/>',
        text(
            middle,
            y + (23 if about else 32),
            name,
            f'font-size="16" font-weight="600" text-anchor="middle" fill="{INK}"',
        ),
    ]
    if about:
        lines.append(text(middle, y + 42, about, f'font-size="12.5" text-anchor="middle" fill="{FAINT}"'))
    return lines


def draw() -> str:
    """The picture as SVG."""
    height = TOP + len(ROWS) * (ROW + GAP) + GAP
    room = WIDTH - LABEL - 60
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="system-ui, sans-serif"'
        ' role="img" aria-label="The rooms of pairlens; each imports only rooms below it">',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        text(LABEL, 26, "src/pairlens", f'font-size="14" font-family="monospace" fill="{FAINT}"'),
    ]
    for index, (label, rooms) in enumerate(ROWS):
        y = TOP + index * (ROW + GAP)
        lines.append(text(LABEL - 16, y + 32, label, f'font-size="13.5" text-anchor="end" fill="{FAINT}"'))
        width = (room - GAP * (len(rooms) - 1)) / len(rooms)
        for place, (name, about) in enumerate(rooms):
            lines += box(LABEL + place * (width + GAP), y, width, name, about)
    x, end = WIDTH - 34, height - 2 * GAP
    lines += [
        f'<path d="M{x} {TOP} V{end} m-6 -9 l6 9 l6 -9" fill="none" stroke="{FAINT}" stroke-width="1.5"/>',
        text(
            0,
            0,
            "imports",
            f'font-size="13" fill="{FAINT}" transform="translate({x + 16} {height / 2 - 24:g}) rotate(90)"',
        ),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    (Path(__file__).parent / "images" / "architecture.svg").write_text(draw(), encoding="utf-8")
