#!/usr/bin/env python3
"""Writes the files that follow from folders of records: the header of every op (graph/ops/NAME.h, the public block of
graph/ops/NAME.cpp), the headers that include all of a folder, and the lists of records. They are committed, so that a checkout
compiles and an editor finds every declaration without a build. A file that is not recognised is an error.

usage: collect.py [--check] [--root FOLDER]     0: all is well, 1: --check found old files, or a file is wrong, 2: bad usage
"""
import argparse
import os
import pathlib
import re
import sys
import textwrap

# C++ type, namespace, header and list function of the records ("extern const TYPE NAME{" in FOLDER/*.cpp), and where the list goes.
RECORDS = {
    "train/models": ("ModelDef", "tutti", "train/task/model.h", "all_models", "train/task"),
    "train/hf/families": ("Family", "tutti::hf", "train/hf/family.h", "all_families", "train/hf"),
    "nn/kinds": ("LayerKind", "tutti::nn", "nn/kind.h", "all_layer_kinds", "nn"),
    "data/sets": ("DataForm", "tutti::data", "data/form.h", "all_data_forms", "data"),
    "data/transforms": ("Transform", "tutti::data", "data/transform.h", "all_transforms", "data"),
}
MARK = "// Written by scripts/collect.py from "
BEGIN, END = "// public\n", "// end of public\n"


class Refused(Exception):
    pass


def found(path, text, proper, any_spelling, reads):
    """What `proper` captures in the text. `any_spelling` matches every record: one that is written otherwise is an error."""
    names, spelled = re.findall(proper, text, re.M), len(re.findall(any_spelling, text, re.M))
    if not names or len(names) != spelled:
        raise Refused(f"{path}: {spelled} records, of which {len(names)} read \"{reads}\" at the start of a line")
    return names


def records(path, text, kind, name="[a-z0-9_]+", reads="extern const"):
    return found(path, text, rf"^{reads} {kind} ({name}) *{{", rf"{kind}\s+[A-Za-z0-9_]+\s*[{{=]|[^A-Za-z0-9_]{kind}\s*{{",
                 f"{reads} {kind} NAME{{")


def sources(root, folder, ending):
    """Paths of the folder's files, relative to the root, and their texts."""
    return [(path.relative_to(root).as_posix(), path.read_text(encoding="utf-8"))
            for path in sorted((root / folder).glob(f"*{ending}")) if not path.read_text(encoding="utf-8").startswith(MARK)]


def listed(folder, kind, namespace, header, function, names, declared=""):
    """A source file: `function()` lists these records."""
    pointers = "".join(f"    &{name},\n" for name in names)
    return f"""{MARK}{folder}/.
// clang-format off
#include "{header}"

namespace {namespace} {{

{declared}static constexpr const {kind}* records[] = {{
{pointers}}};

std::span<const {kind}* const> {function}() {{ return records; }}

}}  // namespace {namespace}
"""


def umbrella(folder, paths, system=""):
    """A header that includes those of a folder."""
    includes = "".join(f'#include "{path}"\n' for path in paths)
    return f"{MARK}{folder}/.\n#pragma once\n{system}// IWYU pragma: begin_exports\n{includes}// IWYU pragma: end_exports\n"


def op_header(path, text):
    """The header of an op's file, and the names of its records."""
    begin, end = text.find(BEGIN), text.find(END)
    if begin < 0 or end < begin:
        raise Refused(f'{path}: an op\'s file declares its record and functions between the lines "{BEGIN.strip()}" and "{END.strip()}"')
    public = text[begin + len(BEGIN):end]
    for function in re.findall(r"^[A-Za-z_][^\n(;{}]*\(", public, re.M):
        if not re.match("(inline|TUTTI_API|constexpr|using) ", function):
            raise Refused(f'{path}: the public "{function}…)" is neither inline nor TUTTI_API: libtutti would not export it')
    names = records(path, text, "OpDef", "[a-z0-9_]+_op", "const")
    for name in names:
        if f"extern TUTTI_API const OpDef {name};" not in public:
            raise Refused(f"{path}: its public block lacks: extern TUTTI_API const OpDef {name};")
    header = f'{MARK}{path}: change that file.\n#pragma once\n#include "graph/op.h"\n'
    if re.search(r"\w+Options\b", public):
        header += '#include "graph/op_options.h"\n'
    return f"{header}\nnamespace tutti {{\n\n{public}\n}}  // namespace tutti\n", names


def optimizers(root):
    paths, types = [], []
    for path, text in sources(root, "train/optimizers", ".h"):
        types += found(path, text, r"^struct TUTTI_API ([A-Za-z0-9]+) {", r"^(?:struct|class)[ \n][^;{]*{", "struct TUTTI_API Name {")
        paths.append(path)
    return umbrella("train/optimizers", paths, "#include <tuple>\n\n") + f"""
namespace tutti {{

using BuiltInOptimizers =
{textwrap.fill(f"std::tuple<{', '.join(types)}>;", 120, initial_indent="    ", subsequent_indent=" " * 15)}

}}  // namespace tutti
"""


def collected(root):
    """Every file that this program writes: its path relative to the root, and its text."""
    out, headers, ops = {}, [], []
    for path, text in sources(root, "graph/ops", ".cpp"):
        headers.append(path.replace(".cpp", ".h"))
        out[headers[-1]], names = op_header(path, text)
        ops += names
    out["graph/ops.h"] = umbrella("graph/ops", headers)
    by_name = sorted(ops, key=lambda op: op.removesuffix("_op"))
    out["graph/all_ops.cpp"] = listed("graph/ops", "OpDef", "tutti", "graph/ops.h", "all_ops", by_name)
    for folder, (kind, namespace, header, function, place) in RECORDS.items():
        names = [name for path, text in sources(root, folder, ".cpp") for name in records(path, text, kind)]
        declared = "".join(f"extern const {kind} {name};\n" for name in names)
        out[f"{place}/{function}.cpp"] = listed(folder, kind, namespace, header, function, names, declared)
    out["train/optimizers.h"] = optimizers(root)
    return out


def old(root, texts):
    """Paths of files that are not as they should be, and of headers whose op is gone."""
    changed = [path for path, text in texts.items() if not (root / path).is_file() or (root / path).read_text(encoding="utf-8") != text]
    gone = [path.relative_to(root).as_posix() for path in sorted((root / "graph/ops").glob("*.h"))]
    return changed, [path for path in gone if path not in texts]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; name the files that are not up to date")
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    args = parser.parse_args()
    try:
        texts = collected(args.root)
    except Refused as refused:
        return print(f"collect: {refused}", file=sys.stderr) or 1
    changed, gone = old(args.root, texts)
    if args.check:
        for path in changed + gone:
            print(f"collect: {path} is not up to date: run scripts/collect.py", file=sys.stderr)
        return 1 if changed or gone else 0
    for path in changed:
        written = args.root / f"{path}.part"
        written.write_text(texts[path], encoding="utf-8")
        os.replace(written, args.root / path)
    for path in gone:
        (args.root / path).unlink()
    for path in changed + gone:
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
