#!/usr/bin/env python3
"""Checks that every link within a built site leads to a file, and its anchor to an element: check_links.py FOLDER."""
import html.parser
import pathlib
import sys
import urllib.parse

DOXYGEN = {"nested-classes"}  # of private classes, which Doxygen 1.9 links and leaves out


class Page(html.parser.HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.links, self.anchors = set(), set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if value and name in ("href", "src"):
                self.links.add(value)
            if value and (name == "id" or (name == "name" and tag == "a")):
                self.anchors.add(value)


def dead_links(site):
    """What is wrong, a line each."""
    pages = {path: Page(path) for path in sorted(site.rglob("*.html"))}
    for path, page in pages.items():
        for link in sorted(page.links):
            url = urllib.parse.urlsplit(link)
            if url.scheme or url.netloc or path.name == "404.html":
                continue
            target = (path.parent / urllib.parse.unquote(url.path)).resolve() if url.path else path
            target = target / "index.html" if target.is_dir() else target
            anchor = urllib.parse.unquote(url.fragment)
            if not target.exists():
                yield f"{path.relative_to(site)}: {link} leads to nothing"
            elif anchor and anchor not in DOXYGEN and target in pages and anchor not in pages[target].anchors:
                yield f"{path.relative_to(site)}: {link}: no such anchor"


def main(folder):
    site = pathlib.Path(folder).resolve()
    dead = list(dead_links(site))
    print("".join(f"docs: {line}\n" for line in dead), end="", file=sys.stderr)
    return 1 if dead else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
