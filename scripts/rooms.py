"""Check that each Python file imports only from rooms that its own may use.

Rooms are the folders of the package, and the modules beside them. A table in docs/architecture.md
has them, the lowest first. A module imports those of its own room and of the rows above it, and
none that leads back to it. Another table there has all imports inside of functions. Each module has
a row in docs/runtime.md.
"""

import ast
import re
import sys

from layers import ROOT, TABLE, read_rows

PAGE = ROOT / "docs/runtime.md"
SOURCES = ROOT / "third_party/autodiff/backend"
PACKAGE = "__init__"


def room_of(module):
    """Return the room of a module, which is itself if it stands beside the folders."""
    return module.rpartition("/")[0] or module


def described():
    """Return the modules with a row on the page; a table of a room begins with "In `room`:"."""
    found, room = set(), ""
    for line in PAGE.read_text().splitlines():
        if line.startswith("#"):
            room = ""
        elif begin := re.fullmatch("In `(\\w+)`:", line):
            room = f"{begin[1]}/"
        elif line.startswith("| `"):
            found |= {room + name for name in re.findall(r"`(\w+)\.py`", line.split("|")[1])}
    return found


class Imports(ast.NodeVisitor):
    """Collects what a module imports of the package: pairs of a line and a module, late or not."""

    def __init__(self, module, known):
        self.folder = module.split("/")[:-1]
        self.known, self.early, self.late, self.depth = known, [], [], 0

    def visit_FunctionDef(self, node):
        """Imports inside are late."""
        self.depth += 1
        self.generic_visit(node)
        self.depth -= 1

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_If(self, node):
        """What type checkers read is not imported."""
        if "TYPE_CHECKING" not in ast.unparse(node.test):
            self.generic_visit(node)

    def visit_ImportFrom(self, node):
        """Find the modules that a statement names."""
        if not node.level:
            return
        folder = self.folder[: len(self.folder) + 1 - node.level]
        path = "/".join([*folder, *(node.module or "").split(".")]).strip("/")
        found = {
            self.named("/".join(filter(None, (path, alias.name))), path) for alias in node.names
        }
        (self.late if self.depth else self.early).append((node.lineno, found))

    def named(self, inner, path):
        """Return the module that a name is, or is in."""
        for module in (inner, path, f"{path}/{PACKAGE}"):
            if module in self.known:
                return module
        return PACKAGE


def leads_back(module, graph):
    """Return the modules of a circle through a module, in order; None if there is none."""
    paths, seen = [[module]], set()
    while paths:
        path = paths.pop()
        for following in graph[path[-1]]:
            if following == module:
                return path
            if following not in seen:
                seen.add(following)
                paths.append([*path, following])
    return None


def main():
    rows, listed = read_rows("Rooms"), read_rows("Late imports").keys()
    files = {p.relative_to(SOURCES).with_suffix("").as_posix(): p for p in SOURCES.rglob("*.py")}
    graph, said, used = {}, [], set()
    for module, path in sorted(files.items()):
        imports = Imports(module, files)
        imports.visit(ast.parse(path.read_text()))
        room = room_of(module)
        if room not in rows:
            said.append(f"{module}: no row of the table has {room}")
        graph[module] = set().union(*(found for _, found in imports.early + imports.late))
        for line, found in imports.early + imports.late:
            for other in found:
                above = rows.get(room_of(other), 99) < rows.get(room, -1)
                if room_of(other) != room and not above:
                    said.append(f"{module}:{line}: {room} may not import {other}")
        if imports.late and module not in listed:
            said.append(f"{module}:{imports.late[0][0]}: imports late, and is not listed")
        used |= {module} if imports.late else set()
    said += [f"{module}: is listed, and imports nothing late" for module in listed - used]
    page = described()
    said += [f"{m}: has no row in {PAGE.name}" for m in graph.keys() - page if PACKAGE not in m]
    said += [f"{m}: has a row in {PAGE.name}, and is not there" for m in page - graph.keys()]
    for module in graph:
        circle = leads_back(module, graph)
        if circle:
            said.append(f"{' → '.join([*circle, module])}: a circle")
    print("".join(f"{line} ({TABLE.name}, Rooms, Late imports)\n" for line in said), end="")
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main())
