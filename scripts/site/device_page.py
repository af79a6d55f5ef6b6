"""The page of one device: levels, every op by dtype and direction, conformance."""
from html_text import cell, document, esc, seconds, table, yes_no
from reports import LEVELS

OUTCOMES = ("pass", "fail", "unsupported", "expected_failure", "no_room")
DIRECTIONS = ("forward", "backward")


def op_cell(found):
    if found is None:
        return cell("", "none")
    bad = found["fail"] + found["unsupported"]
    ran = found["pass"] + bad
    left = found["expected_failure"] + found["no_room"]
    kind = "no" if bad else "some" if left else "yes"
    title = ", ".join(f"{found[key]} {key.replace('_', ' ')}" for key in OUTCOMES[1:] if found[key])
    text = f"{found['pass']}" if not bad else f"{found['pass']} of {ran}"
    if "replay" in found:
        text += f" <code>{esc(found['replay'])}</code>"
    return cell(text, "number " + kind, title)


def matrix(part):
    dtypes = list(dict.fromkeys(c["dtype"] for op in part["ops"] for c in op["cells"]))
    columns = [(t, d) for t in dtypes for d in DIRECTIONS if any((c["dtype"], c["direction"]) == (t, d) for op in part["ops"] for c in op["cells"])]
    rows = []
    for op in part["ops"]:
        cells = {(c["dtype"], c["direction"]): c for c in op["cells"]}
        rows.append((esc(op["op"]), [op_cell(cells.get(column)) for column in columns]))
    return table(["op", *(f"{t}<br><span class=\"soft\">{d}</span>" for t, d in columns)], rows)


def listed(title, entries):
    if not entries:
        return ""
    lines = "".join(f"<li><code>{esc(e.get('replay', e['case']))}</code><br>{esc(e['why'])}</li>" for e in entries)
    return f"<h3>{title}</h3><ul>{lines}</ul>\n"


def parity(title, part):
    if part is None:
        return f"<h2>{title}</h2><p>Not run.</p>\n"
    body = f"<h2>{title}</h2>\n<p>{part['pass']} cases pass, {part['fail']} fail, {part['unsupported']} are not supported, " \
           f"{part['expected_failure']} are exceptions that the plugin lists; {esc(part['extent'])} cases, seed {part['seed']}, {seconds(part['seconds'])}.</p>\n"
    return body + listed("Failed", part["failures_list"]) + listed("Not supported", part["unsupported_list"]) + matrix(part)


def conformance(part):
    if part is None:
        return "<h2>Conformance</h2><p>Not run.</p>\n"
    groups = {}
    for check in part["checks"]:
        groups.setdefault(check["id"].split(".")[0], []).append(check)
    rows = []
    for group, checks in groups.items():
        missed = [c for c in checks if c["outcome"] != "pass"]
        bad = any(c["must"] and c["outcome"] == "fail" for c in missed)
        why = "<br>".join(esc(f"{c['id']}: {c['outcome']}: {c['why']}") for c in missed)
        rows.append((esc(group), [cell(f"{len(checks) - len(missed)} of {len(checks)}", "number " + ("no" if bad else "some" if missed else "yes")),
                                  cell(why, "text")]))
    return "<h2>Conformance</h2>\n<p>Checks of the plugin against the ABI, by group.</p>\n" + table(["group", "pass", "others"], rows)


def page(device):
    machine = device.report["machine"]
    levels = table([*LEVELS.values()], []).replace("<tbody></tbody>", "<tbody><tr>" + "".join(yes_no(device.levels[k]) for k in LEVELS) + "</tr></tbody>")
    return document(f"{device.id}: {device.name}", f"""<p><a href="index.html">All devices</a></p>
<h1>{esc(device.id)}</h1>
<p>{esc(device.name)}. Driver: {esc(device.driver)}. {esc(machine['cpu'])}, {esc(machine['system'])}, {esc(device.report['date'])}, tutti
{esc(device.report['version'])}.</p>
{levels}
<p class="key"><span class="yes">all pass</span><span class="some">some are listed exceptions, or need more memory</span><span class="no">some fail or are
not supported</span><span class="none">no such case</span></p>
{parity("Parity", device.part("parity"))}
{parity("Exact parity", device.part("exact"))}
{conformance(device.part("conformance"))}""")
