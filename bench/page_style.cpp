// The head of the page. Colours are the Okabe-Ito palette (distinguishable with colour blindness), lighter on dark.
#include "bench/page_style.h"

#include <fmt/format.h>

#include "core/base/text.h"

namespace tutti::bench {
namespace {

constexpr std::string_view style = R"(
:root { color-scheme: light dark; --ink: #1c2430; --soft: #566275; --line: #d5dae1; --ground: #ffffff; --panel: #f5f7fa;
  --c0: #0072b2; --c1: #d55e00; --c2: #009e73; --c3: #8a8f98; --c4: #cc79a7; --c5: #b8860b; --c6: #3f9fd8; --c7: #5b3fb0; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e9ee; --soft: #a3adba; --line: #39414d; --ground: #14181e; --panel: #1d232b;
    --c0: #5fb4ec; --c1: #ff9a55; --c2: #3fd0a4; --c3: #a0a6b0; --c4: #ec9cc6; --c5: #e3bd4f; --c6: #8fd0f5; --c7: #a893f0; }
}
* { box-sizing: border-box; }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--ground); margin: 0 auto;
  padding: 1.2em clamp(.8em, 3vw, 2em) 3em; max-width: 84em; }
h1 { font-size: 1.7em; margin: .2em 0; } h2 { font-size: 1.3em; margin: 2em 0 .3em; } h3 { font-size: 1em; margin: 0 0 .3em; }
p { max-width: 62em; margin: .3em 0 .9em; color: var(--soft); }
dl.machine { display: grid; grid-template-columns: max-content 1fr; gap: .1em 1em; margin: .8em 0; }
dl.machine dt { color: var(--soft); } dl.machine dd { margin: 0; overflow-wrap: anywhere; }
.grid { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 30em), 1fr)); gap: 1em; align-items: start; }
figure { margin: 0; padding: .8em 1em; background: var(--panel); border: 1px solid var(--line); border-radius: .5em; min-width: 0; }
figcaption { font-weight: 600; margin-bottom: .4em; overflow-wrap: anywhere; }
figcaption small { font-weight: 400; color: var(--soft); display: block; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
table.bars { width: 100%; }
table.bars th { text-align: left; font-weight: 500; white-space: nowrap; padding: .12em .6em .12em 0; }
table.bars td { padding: .12em 0; } table.bars td.track { width: 100%; }
table.bars td.value { text-align: right; white-space: nowrap; padding-left: .7em; }
table.bars td.ratio { text-align: right; white-space: nowrap; padding-left: .7em; color: var(--soft); }
.track div { position: relative; height: 1.05em; background: var(--line); border-radius: .15em; overflow: hidden; }
.track b { position: absolute; inset: 0 auto 0 0; border-radius: .15em; background: currentColor; }
.track b.peer { background: repeating-linear-gradient(135deg, currentColor 0 .35em, transparent .35em .55em); }
.track i { position: absolute; top: 32%; bottom: 32%; min-width: 2px; background: var(--ink); }
.track b.cut { border-radius: .15em 0 0 .15em; -webkit-mask-image: linear-gradient(90deg, #000 85%, transparent); mask-image: linear-gradient(90deg, #000 85%, transparent); }
.l0 { color: var(--c0); } .l1 { color: var(--c1); } .l2 { color: var(--c2); } .l3 { color: var(--c3); }
.l4 { color: var(--c4); } .l5 { color: var(--c5); } .l6 { color: var(--c6); } .l7 { color: var(--c7); }
.why { color: var(--soft); font-size: .9em; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; border: 1px solid var(--line); border-radius: .5em; }
table.all { font-size: .9em; width: 100%; }
table.all th, table.all td { padding: .22em .7em; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
table.all th { text-align: left; } table.all thead th { background: var(--panel); text-align: right; }
table.all thead th:first-child, table.all thead th.why { text-align: left; }
table.all tr.case th { background: var(--panel); padding-top: .6em; }
table.all td.why { text-align: left; white-space: normal; min-width: 24em; }
table.all meter { width: 4em; height: .8em; margin-right: .4em; vertical-align: -.05em; }
svg { display: block; width: 100%; height: auto; font: 12.5px system-ui, sans-serif; }
svg text { fill: var(--ink); } svg .tick { fill: var(--soft); font-size: 11px; }
svg .axis { stroke: var(--line); stroke-width: 1; } svg .roof { fill: none; stroke: currentColor; stroke-width: 2; }
svg .cache { stroke-dasharray: 5 4; stroke-width: 1.3; }
svg .dot { fill: currentColor; stroke: var(--panel); stroke-width: 1; } svg .line { fill: none; stroke: currentColor; stroke-width: 2; }
svg .lead { stroke: var(--soft); stroke-width: .7; }
details { margin: .5em 0 0; } summary { cursor: pointer; color: var(--soft); }
ul { padding-left: 1.3em; color: var(--soft); }
@media (max-width: 34em) { table.bars td.track { min-width: 5em; } body { font-size: 14px; } }
@media print { figure { break-inside: avoid; } }
)";

}  // namespace

std::string page_head(std::string_view title, std::string_view more_style) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/><meta name=\"viewport\" "
      "content=\"width=device-width, initial-scale=1\"/>\n<title>{}</title><style>{}{}</style></head><body>\n",
      escape_xml(title), style, more_style);
}

}  // namespace tutti::bench
