"""What axe-core finds on a page, in the light and in the dark."""

from __future__ import annotations

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

from tests.browser.label_support import settled

GRAVE = ("serious", "critical")
THEMES = ("dark", "light")
LOOKS = 8


def assert_accessible(page: Page) -> None:
    """No serious finding on the page as it stands; it is left as it was."""
    settled(page)
    page.evaluate(Axe().axe_script)
    for theme in THEMES:
        page.emulate_media(color_scheme=theme)
        for _ in range(LOOKS):  # a page that takes on the other theme is drawn anew, and old parts of it fade
            settled(page)
            grave = _grave(page, ["wcag2a", "wcag2aa"] if theme == THEMES[0] else ["color-contrast"])
            if not grave:
                break
        assert not grave, f"{page.url}, {theme}: {grave}"


def _grave(page: Page, rules: list[str]) -> list[str]:
    """What these rules (or those with these tags) find: colours are all that differs between the themes."""
    findings = page.evaluate("(runOnly) => axe.run({ runOnly, resultTypes: ['violations'] })", rules)["violations"]
    return [_in_words(finding) for finding in findings if finding["impact"] in GRAVE]


def _in_words(finding: dict) -> str:
    places = "; ".join(f"{node['html'][:160]} {node['failureSummary']}" for node in finding["nodes"][:3])
    return f"{finding['id']}: {places}"
