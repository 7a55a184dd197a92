"""API pages of all public names, written anew at every build; a name without an entry fails it.

A name is public if it is in the `__all__` of a package in `public_packages`. It is documented once,
by its shortest path. An inline literal that is such a name becomes a link to its entry.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from docutils import nodes
from public_packages import PACKAGES
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.pycode import ModuleAnalyzer
from sphinx.transforms import SphinxTransform
from sphinx.util import logging

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Entry:
    """A public name: where it is documented, and what it is."""

    package: str
    name: str
    group: str
    thing: Any

    @property
    def path(self) -> str:
        """The path by which a user imports it."""
        return f"{self.package}.{self.name}"

    @property
    def directive(self) -> str:
        """The autodoc directive for it."""
        if inspect.isclass(self.thing):
            kind = "autoexception" if issubclass(self.thing, BaseException) else "autoclass"
        else:
            kind = "autofunction" if callable(self.thing) else "autodata"
        return kind

    @property
    def lacks(self) -> str:
        """What its docstring lacks, or nothing."""
        if self.directive == "autodata":
            return "" if self.data_text else "a docstring after its assignment"
        text = self.thing.__doc__ or ""
        if not text.strip():
            return "a docstring"
        return "" if ">>>" in text else "an example (>>>)"

    @property
    def data_text(self) -> str:
        """The docstring after the assignment of data, in the module which has it."""
        for name, module in list(sys.modules.items()):
            if name.startswith("jaxmbd") and getattr(module, self.name, None) is self.thing:
                analyzer = ModuleAnalyzer.for_module(name)
                analyzer.analyze()
                if text := analyzer.attr_docs.get(("", self.name)):
                    return "\n".join(text).strip()
        return ""

    @property
    def lines(self) -> list[str]:
        """Its part of a page."""
        if self.directive == "autodata":
            text = [f"   {line}" for line in self.data_text.splitlines()]
            return [f".. py:data:: {self.path}", "", *text, ""]
        members = ["   :members:"] if self.directive == "autoclass" else []
        return [f".. {self.directive}:: {self.path}", *members, ""]


@cache
def entries() -> tuple[Entry, ...]:
    """All public names; what several packages export belongs to the first of them."""
    found, seen = [], set()
    for package in PACKAGES:
        module = importlib.import_module(package)
        groups = _groups(module) if package == "jaxmbd" else {}
        for name in module.__all__:
            thing = getattr(module, name)
            if inspect.ismodule(thing) or id(thing) in seen:
                continue
            seen.add(id(thing))
            found.append(Entry(package, name, groups.get(name, ""), thing))
    return tuple(found)


def _groups(module: ModuleType) -> dict[str, str]:
    """The comment that stands above each name in `__all__`."""
    source = inspect.getsource(module).split("__all__ = [")[1].split("\n]")[0]
    group, found = "", {}
    for line in source.splitlines():
        if comment := re.match(r"\s*# (.+)", line):
            group = comment[1]
        elif name := re.match(r'\s*"(\w+)"', line):
            found[name[1]] = group
    return found


@cache
def _paths() -> dict[str, str]:
    """Public path by every way of writing a name: bare, `mbd.`, full, and where it is defined."""
    found: dict[str, str] = {}
    for entry in entries():
        module = getattr(entry.thing, "__module__", None)
        inside = entry.path.removeprefix("jaxmbd.")
        ways = (entry.name, inside, f"mbd.{inside}", entry.path, f"{module}.{entry.name}")
        for way in ways:
            found.setdefault(way, entry.path)
    return found


def _pages() -> dict[str, list[Entry]]:
    """Entries by their page: one for each package, of `jaxmbd` one for each group."""
    found: dict[str, list[Entry]] = {}
    for package in PACKAGES:
        found[package] = []
        for entry in (x for x in entries() if x.package == package):
            found.setdefault(_page_of(entry), []).append(entry)
    return found


def _page_of(entry: Entry) -> str:
    """The page of a name: of its package, or its group as ``jaxmbd-joints``."""
    if not entry.group:
        return entry.package
    head = entry.group.split(": ")[-1].split(",")[0]
    return f"{entry.package}-{re.sub('[^a-z]+', '_', head.lower())}"


def _title(text: str) -> list[str]:
    return [text, "=" * len(text), ""]


def _page(page: str, shown: list[Entry]) -> str:
    """A page, as reStructuredText."""
    if page in PACKAGES:
        text = [*_title(f"``{page}``"), inspect.getdoc(importlib.import_module(page)) or "", ""]
        if not shown:
            pages = [x for x in _pages() if x.startswith(f"{page}-")]
            text += [".. toctree::", "   :maxdepth: 2", "", *(f"   {x}" for x in pages)]
    else:
        group = shown[0].group
        text = _title(f"{group[0].upper()}{group[1:]}")
        text += [f"Of ``{shown[0].package}``.", ""]
    return "\n".join([*text, *(line for entry in shown for line in entry.lines)])


def _index() -> str:
    """A line for each page with what it is about and all its names, as reStructuredText."""
    text = [".. list-table::", "   :widths: 22 78", ""]
    for page, shown in _pages().items():
        package = page in PACKAGES
        about = inspect.getdoc(importlib.import_module(page)) if package else shown[0].group
        first = " ".join((about or "").split("\n\n")[0].split()).removeprefix("jaxmbd: ")
        names = ", ".join(f":py:obj:`{x.name} <{x.path}>`" for x in shown)
        title = page if package else "jaxmbd"
        text += [f"   * - :doc:`{title} <{page}>`", f"     - {first[0].upper()}{first[1:]}", ""]
        text += [f"       {names}", ""] if names else []
    return "\n".join(text)


def write_pages(app: Sphinx) -> None:
    """Write the pages, and warn of names whose entries would be empty or have no example."""
    folder = Path(app.srcdir) / "api"
    folder.mkdir(exist_ok=True)
    for entry in entries():
        if entry.lacks:
            log.warning("public name %s lacks %s", entry.path, entry.lacks)
    texts = {f"{page}.rst": _page(page, shown) for page, shown in _pages().items()}
    texts["names.inc"] = _index()
    for path in set(folder.glob("*.rst")) - {folder / name for name in texts}:
        path.unlink()  # of names that are no more
    for name, text in texts.items():
        path = folder / name
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")


def _link(text: str, path: str, document: str) -> addnodes.pending_xref:
    literal = nodes.literal(text, text, classes=["xref", "py", "py-obj"])
    return addnodes.pending_xref(
        "",
        literal,
        refdomain="py",
        reftype="obj",
        reftarget=path,
        refexplicit=True,
        refdoc=document,
    )


class LinkNames(SphinxTransform):
    """Inline literals that are public names become links to their entries."""

    default_priority = 400

    def apply(self, **kwargs: Any) -> None:
        """Whole literals only, with or without a call's parentheses and arguments."""
        for name in list(self.document.findall(addnodes.pending_xref)):
            if name.get("reftype") == "obj" and not name.get("refexplicit") and _in_field(name):
                name.replace_self(name.children)  # an attribute in the list of its own class
        for literal in list(self.document.findall(nodes.literal)):
            if isinstance(literal.parent, (nodes.reference, addnodes.pending_xref)):
                continue
            path = _path_of(literal.astext(), self.env.docname)
            if path:
                literal.replace_self(_link(literal.astext(), path, self.env.docname))


def _in_field(node: nodes.Node | None) -> bool:
    while node is not None and not isinstance(node, nodes.field):
        node = node.parent
    return node is not None


def _path_of(text: str, document: str) -> str | None:
    """The public path for a literal in a document.

    Bare names of functions, such as `bias`, are often something else: they are links only on the
    pages of the interface, to the same page or to `jaxmbd` itself.
    """
    name = re.sub(r"\(.*\)$", "", text)
    path = _paths().get(name)
    if path is None or "." in name or name[:1].isupper():
        return path
    here = document.removeprefix("api/").partition("-")[0]
    return path if path.rpartition(".")[0] in ("jaxmbd", here) and here != document else None


def _skip(app: Sphinx, what: str, name: str, thing: Any, skip: bool, options: Any) -> bool | None:
    """Fields of named tuples stand in the docstring of their class."""
    return True if (thing.__doc__ or "").startswith("Alias for field number") else None


def _resolve(app: Sphinx, env: Any, node: addnodes.pending_xref, content: nodes.Node) -> Any:
    """Types in signatures: public ones by their public path, those of other libraries as text."""
    target = node.get("reftarget", "")
    if node.get("refdomain") != "py":
        return None
    path = _paths().get(target)
    if path and path != target:
        domain = env.get_domain("py")
        return domain.resolve_xref(env, node["refdoc"], app.builder, "obj", path, node, content)
    # Of a signature, not written by a person: parts that are internal or another library's.
    return content if node.get("reftype") in ("class", "data", "exc") else None


def mend_sources(app: Sphinx, page: str, template: str, context: Any, doctree: Any) -> None:
    """Links from pages of source code back to entries.

    Sphinx writes them with one package for all names of a module, which may have several.
    """
    if page.startswith("_modules/") and "body" in context:
        link = re.compile(r'(href="[./]*/api/([\w.-]+)\.html#)([\w.]+)"')
        context["body"] = link.sub(_mended, context["body"])


def _mended(link: re.Match[str]) -> str:
    package = link[2].partition("-")[0]
    parts = link[3].split(".")
    for k in range(len(parts)):
        if any(x.package == package and x.name == parts[k] for x in entries()):
            return f'{link[1]}{package}.{".".join(parts[k:])}"'
    return link[0]


def setup(app: Sphinx) -> dict[str, Any]:
    """Join Sphinx."""
    app.connect("builder-inited", write_pages)
    app.connect("missing-reference", _resolve)
    app.connect("autodoc-skip-member", _skip)
    app.connect("html-page-context", mend_sources)
    app.add_transform(LinkNames)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
