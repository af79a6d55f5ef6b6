#!/usr/bin/env python3
"""Writes the pages of the site, pages.py FOLDER: README.md, docs/ and others, with links that work there.

A link to a page of the site stays a link; one to another file of the repository leads to a page that shows the file. A link to
nothing is an error. The Python API is one page per module, from the sources and the stubs of the build (--package)."""
import argparse
import ast
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOP = {"README.md": "index.md", **{name: name for name in ("CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")}}
FENCE = re.compile(r"(^```.*?^```[^\n]*$|`[^`\n]+`)", re.M | re.S)
LINK = re.compile(r"\]\(([^)\s]+)\)")
LANGUAGES = {".cpp": "cpp", ".h": "cpp", ".py": "python", ".sh": "bash", ".json": "json", ".k": "c", ".c": "c"}
ABOUT = {"tutti": "The package: devices, graphs, tasks, the trainer and `from_torch`.",
         "tutti.torch": "A PyTorch module as a training step.",
         "tutti._core": "The compiled module: what the others are made of."}


class Pages:
    def __init__(self, out):
        self.out = out
        listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT,
                                capture_output=True, text=True, check=True)
        self.files = {name for name in listed.stdout.split("\0") if name and (ROOT / name).exists()}
        self.folders = {str(parent) for name in self.files for parent in pathlib.PurePath(name).parents}
        self.sources, self.errors = set(), []

    def place(self, name):
        """Where a file or folder of the repository is on the site."""
        if f"{name}/README.md" in self.files:
            name += "/README.md"
        if name in TOP:
            return TOP[name]
        if name.startswith("docs/") and name in self.files:
            return name.removeprefix("docs/")
        if name in self.files or name in self.folders:
            self.sources.add(name)
            return f"source/{name}.md"
        return None

    def rewritten(self, name, text, to):
        """The page's text with the links of the file `name` as those of the page `to`."""
        def link(match):
            target, _, anchor = match[1].partition("#")
            if not target or re.match(r"[a-z]+:", target):
                return match[0]
            place = self.place(os.path.normpath(os.path.join(os.path.dirname(name), target)))
            if place is None:
                self.errors.append(f"{name}: the link {match[1]} leads to nothing")
                return match[0]
            return f"]({os.path.relpath(place, os.path.dirname(to) or '.')}{'#' + anchor if anchor else ''})"

        # "] [" of formulas is a reference in Python's Markdown, not in GitHub's.
        return "".join(part if i % 2 else LINK.sub(link, part).replace("] [", "] \\[") for i, part in enumerate(FENCE.split(text)))

    def write(self, to, text):
        path = self.out / to
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def copy(self, name, to):
        if name.endswith(".md"):
            self.write(to, self.rewritten(name, (ROOT / name).read_text(encoding="utf-8"), to))
        else:
            (self.out / to).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, self.out / to)

    def source(self, name):
        """A page that shows a file of the repository, or lists a folder's."""
        title = f"---\ntitle: {name}\nsearch:\n  exclude: true\n---\n\n# `{name}`\n\n"
        to = f"source/{name}.md"
        if name in self.folders:
            inside = sorted({"/".join(f.split("/")[:name.count("/") + 2]) for f in self.files if f.startswith(name + "/")})
            self.write(to, title + "".join(f"- `{entry}`\n" for entry in inside))
            return
        if name.endswith(".md"):
            self.copy(name, to)
            return
        text = (ROOT / name).read_text(encoding="utf-8")
        self.write(to, f"{title}````{LANGUAGES.get(pathlib.PurePath(name).suffix, 'text')}\n{text.rstrip()}\n````\n")


def overview(package):
    """The page of the package itself: its functions, and where its other public names are from."""
    body = ast.parse((package / "__init__.py").read_text(encoding="utf-8")).body
    names = next(ast.literal_eval(node.value) for node in body if isinstance(node, ast.Assign) and node.targets[0].id == "__all__")
    functions = [node.name for node in body if isinstance(node, ast.FunctionDef) and node.name in names and node.name != "from_torch"]
    rest = [name for name in names if name not in functions]
    return ("".join(f"::: tutti.{name}\n\n" for name in functions) +
            "Also in this package, from its modules: " + ", ".join(f"`{name}`" for name in rest) + ".\n")


def python_pages(pages, package):
    """A page per module; what the compiled module gives is left out where it was not built."""
    modules = sorted(path.stem for path in package.glob("*.py") if not path.stem.startswith("_"))
    if (package / "_core.pyi").exists():
        modules.append("_core")
    else:
        modules.remove("ops")
        print("docs: the Python package is not built: its compiled module and the ops are left out of the API pages", file=sys.stderr)
    rows = ""
    for module in ["tutti", "tutti.torch", *(f"tutti.{name}" for name in modules)]:
        if module == "tutti":
            text = overview(package)
        elif module == "tutti.torch":
            text = "::: tutti.torch.step.from_torch\n\n::: tutti.torch.step.Step\n"
        else:
            text = f"::: {module}\n    options:\n      show_root_heading: false\n      show_root_toc_entry: false\n"
        pages.write(f"api/{module}.md", f"# {module}\n\n{ABOUT.get(module, '')}\n\n{text}")
        rows += f"- [`{module}`]({module}.md)\n"
    pages.write("api/python.md", "# Python API\n\n" + rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--package", type=pathlib.Path, default=ROOT / "python/tutti", help="the folder tutti of the Python package")
    o = parser.parse_args()
    shutil.rmtree(o.folder, ignore_errors=True)
    pages = Pages(o.folder)
    for name in sorted(pages.files):
        if name in TOP or name.startswith("docs/"):
            pages.copy(name, pages.place(name))
    done = set()
    while pages.sources - done:  # pages of Markdown may link to more
        for name in sorted(pages.sources - done):
            pages.source(name)
            done.add(name)
    python_pages(pages, o.package)
    shutil.copyfile(ROOT / "scripts/docs/site.css", o.folder / "site.css")
    if pages.errors:
        sys.exit("\n".join(f"docs: {error}" for error in pages.errors))


if __name__ == "__main__":
    main()
