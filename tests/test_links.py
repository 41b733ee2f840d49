"""Every relative link in the documentation leads somewhere."""

import re
from pathlib import Path
from urllib.parse import unquote

import pytest

from tests.docs_runner import FENCE, closes

ROOT = Path(__file__).resolve().parent.parent
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted(ROOT.glob("docs/**/*.md")),
]
LINK = re.compile(r"!?\[(?:[^\]\\]|\\.)*\]\(<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\)")
CODE = re.compile(r"(`+).+?\1")
ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)


def prose(text: str) -> str:
    """The text without its fenced blocks."""
    kept, lines = [], iter(text.split("\n"))
    for line in lines:
        fence = FENCE.fullmatch(line)
        if fence is None:
            kept.append(line)
            continue
        for inner in lines:
            if closes(inner, fence["ticks"]):
                break
    return "\n".join(kept)


def links(text: str) -> list[str]:
    """The targets of the links in a page's prose."""
    return LINK.findall(CODE.sub("", prose(text)))


def anchors(text: str) -> set[str]:
    """What a page's headings are called in links, as GitHub makes it."""
    found: set[str] = set()
    for line in prose(text).split("\n"):
        if re.match(r"#{1,6} ", line):
            name = LINK.sub(lambda link: link[0].partition("]")[0], line.lstrip("# ")).lower()
            name = re.sub(r"[^\w\- ]", "", name).strip().replace(" ", "-")
            same = sum(1 for other in found if re.fullmatch(re.escape(name) + r"(-\d+)?", other))
            found.add(f"{name}-{same}" if same else name)
    return found


def leads_somewhere(page: Path, link: str) -> bool:
    """Whether a link of a page names a file of the repository, and a heading that the file has."""
    path, _, anchor = unquote(link).partition("#")
    target = (page.parent / path).resolve() if path else page
    if not (target.exists() and target.is_relative_to(ROOT)):
        return False
    return not anchor or anchor in anchors(target.read_text(encoding="utf-8"))


def broken(page: Path) -> list[str]:
    """The relative links of a page that lead nowhere."""
    found = links(page.read_text(encoding="utf-8"))
    return [link for link in found if not (ELSEWHERE.match(link) or leads_somewhere(page, link))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page):
    """Each relative link names a file of this repository, and a heading of it if it has an anchor."""
    assert broken(page) == []


def test_broken_links_are_found(tmp_path, monkeypatch):
    """A missing file, a missing heading and a way out are found; code and other sites are not looked at."""
    monkeypatch.setattr("tests.test_links.ROOT", tmp_path)
    other = tmp_path / "other.md"
    other.write_text("# Two `words`, here\n## Two words here\n```text\n# no heading\n```\n")
    page = tmp_path / "page.md"
    page.write_text(
        "[a](other.md) [b](other.md#two-words-here) [c](other.md#two-words-here-1) [d](gone.md)\n"
        "[e](other.md#no-heading) [f](https://example.org/gone) [g](../page.md) `[h](gone.md)`\n"
        "```text\n[i](gone.md)\n```\n[j](#gone)\n"
    )

    assert broken(page) == ["gone.md", "other.md#no-heading", "../page.md", "#gone"]
