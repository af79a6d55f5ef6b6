"""Lists of arguments in docstrings, a name and its meaning in two columns, become lists of Markdown; "] [" of formulas stays."""
import re

import griffe

ROW = re.compile(r"^(\w+)  +(\S.*(?:\n  +\S.*)*)", re.M)


class Columns(griffe.Extension):
    def on_object(self, *, obj, **_):
        if obj.docstring:
            text = ROW.sub(lambda m: f"- `{m[1]}`: " + re.sub(r"\n +", " ", m[2]), obj.docstring.value)
            obj.docstring.value = re.sub(r"(?m)^(?! {4}).*", lambda m: m[0].replace("] [", "] \\["), text)
