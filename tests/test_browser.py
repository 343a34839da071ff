"""The helper of browser tests notices what it should."""

import pytest

from browser import faults, visit


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ("<img src='http://127.0.0.1:9/x.png'>", "another origin"),
        ("<script>console.error('oh')</script>", "error: oh"),
        ("<script>throw new Error('no')</script>", "exception: no"),
    ],
)
def test_visit_notices_foreign_requests_errors_and_exceptions(body, complaint, tmp_path, chromium):
    path = tmp_path / "bad.html"
    path.write_text(f"<!doctype html><title>x</title>{body}", encoding="utf-8")
    with pytest.raises(AssertionError, match=complaint), visit(chromium, path.as_uri()) as page:
        page.wait_for_timeout(100)


def test_faults_finds_a_button_without_a_name(tmp_path, chromium):
    path = tmp_path / "bad.html"
    path.write_text("<!doctype html><html lang=en><title>x</title><main><button></button></main>", encoding="utf-8")
    with visit(chromium, path.as_uri()) as page:
        assert [fault.split(":")[0] for fault in faults(page)] == ["button-name"]
