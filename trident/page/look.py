"""How the page looks, and how it keeps up to date: its style and its script, both inline."""

from __future__ import annotations

STYLE = """
:root{color-scheme:light dark;--paper:#fff;--ink:#1b2430;--faint:#57606a;--line:#d0d7de;
--band:#f5f7f9;--accent:#0a58a6;--sure:#17692c;--unsure:#8a4b00;--failed:#b3261e}
@media(prefers-color-scheme:dark){:root{--paper:#10161d;--ink:#e6edf3;--faint:#a3afbb;
--line:#344252;--band:#171f29;--accent:#6cb4ff;--sure:#5fd882;--unsure:#f2b45c;--failed:#ff8f87}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:1320px;padding:20px 24px 40px;background:var(--paper);
color:var(--ink);font:15px/1.5 ui-sans-serif,system-ui,"Segoe UI","Liberation Sans",
Arial,sans-serif}
h1{font-size:24px;margin:0}
h2{font-size:17px;margin:30px 0 8px}
header p{margin:4px 0 0}
#status{font-weight:600;color:var(--accent)}
[data-status=failed] #status{color:var(--failed)}
[data-status=running] #status{color:var(--sure)}
#live,footer,caption{color:var(--faint);font-size:13px}
.scroll{overflow-x:auto}
.scroll:focus-visible{outline:2px solid var(--accent);outline-offset:2px}
.scroll .trident-drawing{display:block}
label:has(:checked)+.scroll .trident-drawing{max-width:none}
label{float:right;margin-top:-34px;color:var(--faint);font-size:13px}
.trident-drawing .failed,.trident-drawing g:has(>.failed)>.title{fill:var(--failed)}
.trident-drawing g:has(>.failed)>.frame{stroke:var(--failed);stroke-width:2}
tr.failed th,tr.failed td:nth-child(2){color:var(--failed);font-weight:600}
tr.failed td:nth-child(2){min-width:16em;overflow-wrap:anywhere}
nav{float:right}
a{color:var(--accent)}
table{border-collapse:collapse;min-width:100%;font-variant-numeric:tabular-nums}
caption{text-align:left;padding-bottom:4px}
th,td{text-align:left;vertical-align:top;padding:5px 22px 5px 0;border-top:1px solid var(--line)}
th:last-child,td:last-child{padding-right:0}
thead th{border-top:0;color:var(--faint);font-size:13px;font-weight:600;white-space:nowrap}
tbody th{font-weight:600}
td.n,th.n{text-align:right;white-space:nowrap}
td[colspan]{color:var(--faint)}
.sure{color:var(--sure);font-weight:600;white-space:nowrap}
.unsure{color:var(--unsure);font-weight:600;white-space:nowrap}
tbody th,#errors td:nth-child(5){white-space:nowrap}
#groups td:last-child{min-width:12em}
#errors td:nth-child(n+6){white-space:pre-wrap;font-size:13px;min-width:18em;overflow-wrap:anywhere}
#errors td:nth-child(7),pre{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,
"Liberation Mono",monospace;font-size:12px}
pre{background:var(--band);border:1px solid var(--line);border-radius:8px;padding:12px;
overflow-x:auto;white-space:pre;margin:8px 0 0}
summary{cursor:pointer;font-weight:600}
meter{width:120px;height:12px;vertical-align:middle}
.beside{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,460px),1fr));gap:0 56px}
.beside>*{min-width:0}
@media(max-width:600px){body{padding:14px 12px}th,td{padding-right:10px}
#errors th{white-space:normal}#errors td:nth-child(n+6){min-width:14em}}
""".strip()

SCRIPT = """
(() => {
  const live = document.getElementById("live");
  const put = (place, text) => {
    if (place && place.textContent !== text) place.textContent = text;
  };
  const made = (cell, head, numeric) => {
    const box = document.createElement(head ? "th" : "td");
    if (head) box.scope = "row";
    if (numeric) box.className = "n";
    if (typeof cell === "number") {
      const meter = document.createElement("meter");
      meter.value = cell;
      box.append(meter);
    } else box.textContent = cell;
    return box;
  };
  const fill = (body, rows) => {
    const heads = body.closest("table").tHead.rows[0].cells;
    rows.forEach((cells, at) => {
      const key = JSON.stringify(cells);
      const before = body.rows[at];
      if (before && before.dataset.cells === key) return;
      const row = document.createElement("tr");
      row.dataset.cells = key;
      cells.forEach((cell, number) => {
        const numeric = heads[number].className === "n";
        row.append(made(cell, !number && cells.length > 1, numeric));
      });
      if (cells.length === 1) row.cells[0].colSpan = heads.length;
      else if (body.id === "groups" && cells[1].startsWith("failed")) row.className = "failed";
      if (before) before.replaceWith(row); else body.append(row);
    });
    while (body.rows.length > rows.length) body.deleteRow(-1);
  };
  const source = new EventSource("events");
  source.onmessage = (event) => {
    const now = JSON.parse(event.data);
    if (now.status) document.body.dataset.status = now.status;
    for (const [id, text] of Object.entries(now.texts || {}))
      put(document.getElementById(id), text);
    if (now.failed) for (const note of document.querySelectorAll("svg .note"))
      note.classList.toggle("failed", now.failed.includes(note.id));
    for (const [id, rows] of Object.entries(now.rows || {})) {
      const body = document.getElementById(id);
      if (body) fill(body, rows);
    }
    put(live, "up to date");
  };
  source.onerror = () => put(live, "no connection to the server: these are the last figures");
})();
""".strip()
