import pytest

from browser import visit
from explanations import LONG, make
from pictures import PHONE, WIDE, noisy, unit

PLACES = """() => {
  const frame = document.querySelector(".pl-texts").getBoundingClientRect();
  const boxes = [...document.querySelectorAll(".pl-unit")].flatMap((node) => [...node.getClientRects()]);
  return [...document.querySelectorAll(".pl-number")].map((node) => {
    const link = document.querySelector(`.pl-link[data-pair="${node.dataset.pair}"]`);
    const [x, y] = [Number(node.getAttribute("x")), Number(node.getAttribute("y"))];
    const points = Array.from({ length: 200 }, (_, n) => link.getPointAtLength((link.getTotalLength() * n) / 199));
    const { left, right, top, bottom } = node.getBoundingClientRect();
    return {
      far: Math.min(...points.map((point) => Math.hypot(point.x - x, point.y - y))),
      onWord: boxes.some((box) => box.left < right && left < box.right && box.top < bottom && top < box.bottom),
      sameColour: node.getAttribute("fill") === link.getAttribute("stroke"),
    };
  });
}"""


@pytest.mark.parametrize("viewport", [WIDE, PHONE], ids=["wide", "phone"])
def test_first_numbers_stand_on_the_links_they_belong_to(viewport, guitar, saved, chromium):
    with visit(chromium, saved(guitar), viewport=viewport) as page:
        resting = page.evaluate(PLACES)
        unit(page, "b", "flute").click()
        page.wait_for_selector(".pl-chosen")
        active = page.evaluate(PLACES)
    assert len(resting) > 2
    assert active
    for place in [*resting, *active]:
        assert place["far"] < 6
        assert place["sameColour"]
        assert not place["onWord"]


def test_first_a_word_whose_deletion_changes_nothing_has_no_number_until_it_is_chosen(guitar, saved, chromium):
    same = [f"{score:.2f}" == f"{guitar.score:.2f}" for score in guitar.measured_a[1:-1]]
    assert 0 < sum(same) < len(same)
    with visit(chromium, saved(guitar), viewport=WIDE) as page:
        shown = "nodes => nodes.map((node) => getComputedStyle(node, '::after').display === 'none')"
        words = page.locator(".pl-unit[data-side=a]")
        assert words.evaluate_all(shown) == same
        assert "without a number hardly changes it" in page.locator(".pl-readout").inner_text()
        words.nth(same.index(True)).hover()
        page.wait_for_selector(".pl-chosen")
        assert page.locator(".pl-chosen").evaluate_all(shown) == [False]


def test_first_pairs_that_may_be_noise_have_no_link_no_colour_and_no_place_in_the_list(saved, chromium):
    with visit(chromium, saved(noisy()), viewport=WIDE) as page:
        names = page.locator(".pl-pairs th[scope=row]").all_inner_texts()
        assert names[0] == "coffee · coffee"
        assert "good · bad" not in names, "stronger, and less than two standard errors from zero"
        assert page.locator(".pl-link[data-pair='5,3']").count() == 0
        unit(page, "a", "good").hover()
        page.wait_for_selector(".pl-chosen")
        assert "bad" not in page.locator(".pl-lit").all_inner_texts()
        page.get_by_role("button", name="More pairs").click()
        assert page.locator(".pl-noise th").first.inner_text() == "good · bad", "after all others, and faint"


def test_links_do_not_cross_long_texts_at_rest(saved, chromium):
    with visit(chromium, saved(make("the worst of times", LONG)), viewport=PHONE) as page:
        ends = page.locator(".pl-link").evaluate_all("nodes => nodes.map((node) => node.getBBox().height)")
        between = page.evaluate(
            "(([a, b]) => b.getBoundingClientRect().top - a.getBoundingClientRect().bottom)"
            "([...document.querySelectorAll('.pl-run')])"
        )
        assert all(height <= between + 160 for height in ends)
        assert ("The lines join" in page.locator(".pl-readout").inner_text()) == bool(ends)
