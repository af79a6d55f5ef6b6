#!/usr/bin/env python3
"""Writes a header as a later engine might have it: core/abi/tutti_plugin.h with three more fields in every struct that
grows, two more calls, two more dtypes and another node flag. C++ code over it fills the new fields, as code that knows
them would. TuttiExt does not change: an extension grows behind it.

usage: later_header.py HEADER OUT
"""
import re
import sys

FIELDS = """  uint64_t later_1 TUTTI_LATER(0xA1);
  uint32_t later_2 TUTTI_LATER(0xA2), later_3 TUTTI_LATER(0xA3);
"""
CALLS = """  int32_t (*later_received)(TuttiSession*, uint64_t received[4], TuttiError*);
  int32_t (*later_call)(TuttiSession*, TuttiError*);
"""
STRUCT = re.compile(r"((?:/\*(?:(?!\*/).)*\*/\s*)?typedef struct(?: \w+)? \{)(.*?)(\n\} (\w+);)", re.DOTALL)


def grown(match):
    head, body, tail, name = match.groups()
    if name == "TuttiExt" or not ("[grows]" in head or "[grows]" in body.split("\n")[0]):
        return match.group(0)
    return head + body + "\n" + FIELDS + (CALLS if name == "TuttiPlugin" else "") + tail[1:]


def once(text, old, new):
    if text.count(old) != 1:
        sys.exit(f"later_header.py: the header has {old!r} {text.count(old)} times, once is expected")
    return text.replace(old, new)


def main():
    with open(sys.argv[1], encoding="utf-8") as f:
        text = f.read()
    text = STRUCT.sub(grown, text)
    text = once(text, "  TUTTI_U32 = 8\n", "  TUTTI_U32 = 8,\n  TUTTI_LATER_F8 = 9,\n  TUTTI_LATER_I4 = 10\n")
    text = once(text, "enum { TUTTI_NODE_EXACT = 1 };", "enum { TUTTI_NODE_EXACT = 1, TUTTI_NODE_LATER = 2 };")
    defaults = "#ifdef __cplusplus\n#define TUTTI_LATER(x) = x\n#else\n#define TUTTI_LATER(x)\n#endif\n"
    text = once(text, "#include <stdint.h>\n", "#include <stdint.h>\n" + defaults)
    with open(sys.argv[2], "w", encoding="utf-8") as f:
        f.write(text)


if __name__ == "__main__":
    main()
