"""Parts of pages."""
import html


def esc(text):
    return html.escape(str(text))


def cell(text, kind="", title=""):
    """A cell of a table; `kind`: a class of style.css."""
    named = "".join(f' {name}="{esc(value)}"' for name, value in (("class", kind), ("title", title)) if value)
    return f"<td{named}>{text}</td>"


def yes_no(value):
    """The cell of a level: yes, no, or not run."""
    return cell("not run", "none") if value is None else cell("yes", "yes") if value else cell("no", "no")


def table(head, rows):
    """`head`: names; `rows`: each the heading of the row and its cells."""
    lines = ["<div class=\"scroll\"><table><thead><tr>", *(f"<th>{name}</th>" for name in head), "</tr></thead><tbody>"]
    lines += [f"<tr><th>{first}</th>{''.join(cells)}</tr>" for first, cells in rows]
    return "".join(lines) + "</tbody></table></div>\n"


def document(title, body):
    return (f"<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">"
            f"<title>{esc(title)}</title><link rel=\"stylesheet\" href=\"style.css\"></head><body>\n{body}</body></html>\n")


def seconds(value):
    return f"{value:.0f} s" if value < 120 else f"{value / 60:.0f} min"
