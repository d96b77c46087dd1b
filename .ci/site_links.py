"""Every link within the built site leads to a file, and to an anchor that the file has.

python .ci/site_links.py docs/_build/html
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The links of a page, and what can be linked to on it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note addresses and ids."""
        for name, value in attrs:
            if name == "id" or (name == "name" and tag == "a"):
                self.anchors.add(value or "")
            elif name in ("href", "src") and value:
                self.links.append(value)


def broken(site: Path) -> list[str]:
    """The links that lead nowhere, each with its page."""
    site = site.resolve()
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    found = []
    for path, page in pages.items():
        if path.relative_to(site).parts[0] in ("_modules", "_static"):  # listings of the source, templates of the theme
            continue
        for link in page.links:
            address = urlsplit(link)
            if address.scheme or address.netloc:
                continue
            target = (path.parent / unquote(address.path)).resolve() if address.path else path
            known = pages[target].anchors if target in pages else None
            if not target.exists() or (
                address.fragment and known is not None and unquote(address.fragment) not in known
            ):
                found.append(f"{path.relative_to(site)}: {link}")
    return found


if __name__ == "__main__":
    lost = broken(Path(sys.argv[1]))
    print("\n".join(lost) or "all links within the site lead somewhere")
    sys.exit(bool(lost))
