"""Lists displayed as tables: text in a terminal, HTML in a notebook."""
import html


class Table(list):
    """A list whose repr has one line per element."""

    def row(self, element):
        """The cells of an element's line: texts by column."""
        raise NotImplementedError

    def _cells(self):
        rows = [self.row(e) for e in self]
        columns = list(dict.fromkeys(name for row in rows for name in row))
        return [columns] + [[row.get(name, "") for name in columns] for row in rows]

    def __repr__(self):
        if not self:
            return "[]"
        lines = self._cells()
        widths = [max(map(len, column)) for column in zip(*lines)]
        return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(line, widths)).rstrip() for line in lines)

    def _repr_html_(self):
        head, *rows = ("".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in line)
                       for tag, line in zip(["th"] + ["td"] * len(self), self._cells()))
        return f"<table><tr>{head}</tr>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>"


class Devices(Table):
    """The result of tutti.devices()."""

    def row(self, d):
        return {"device": d.id, "kind": d.kind if d.usable else "unusable", "name": d.name, "why": d.why}


class History(Table):
    """The result of Trainer.fit: a dict per epoch."""

    def row(self, entry):
        return {k: f"{v:.4f}" if isinstance(v, float) else str(v) for k, v in entry.items()}
