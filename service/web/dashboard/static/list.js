// All experiments at a glance.

import { h, main, notice, replace, say } from "./dom.js";
import { asker } from "./api.js";
import { keepPolling } from "./live.js";
import { certaintyMeter, pager, setStatus, status } from "./parts.js";
import { sparkline } from "./sparkline.js";
import * as format from "./format.js";

const TABS = [["", "All"], ["running", "Running"], ["paused", "Paused"], ["draft", "Draft"], ["concluded", "Concluded"], ["archived", "Archived"]];
const COLUMNS = ["Experiment", "Status", "Leader", "Certainty", "Draws", "Leader’s share"];

const wanted = { text: "", status: "", page: 1, ...Object.fromEntries(new URLSearchParams(location.search)) };
wanted.page = Math.max(1, Number(wanted.page) || 1);
const rows = new Map();
let shown = false;

const search = h("input", { type: "search", placeholder: "Search by name or key", "aria-label": "Search experiments", value: wanted.text, maxlength: 255 });
const tabs = h("div", { class: "tabs", role: "group", "aria-label": "Filter by status" });
const body = h("tbody", { role: "rowgroup" });
const table = h(
  "table",
  { class: "grid experiments", role: "table", "aria-label": "Experiments" },
  h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, COLUMNS.map((name) => h("th", { role: "columnheader", scope: "col" }, name)))),
  body,
);
const nothing = h("p", { class: "notice", hidden: true });
const pages = pager((by) => want({ page: wanted.page + by }));
const filters = h("div", { class: "filters" }, tabs, search);
const card = h("div", { class: "card flush" }, table, nothing);

function query() {
  const given = new URLSearchParams();
  if (wanted.text) given.set("text", wanted.text);
  if (wanted.status) given.set("status", wanted.status);
  if (wanted.page > 1) given.set("page", wanted.page);
  return given.toString();
}

const address = () => `/dashboard/experiments?${query()}`;
let ask = asker(address);
const again = keepPolling(async () => {
  const asked = ask;
  const found = await asked();
  if (found && asked === ask) show(found);
});

function want(change) {
  Object.assign(wanted, { page: 1 }, change);
  history.replaceState(null, "", query() ? `?${query()}` : location.pathname);
  ask = asker(address);
  again();
}

let typing = null;
search.addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(() => want({ text: search.value.trim() }), 200);
});

function show(found) {
  const all = Object.values(found.counts).reduce((sum, count) => sum + count, 0);
  if (!all && !wanted.text) return showFirst();
  if (!shown) {
    shown = true;
    replace(
      main(),
      h("div", { class: "title" }, h("h1", {}, "Experiments"), h("a", { class: "button primary", href: "/new" }, "New experiment")),
      filters,
      card,
      pages,
    );
  }
  showTabs(found.counts, all);
  table.hidden = !found.experiments.length;
  nothing.hidden = !table.hidden;
  say(nothing, wanted.text ? `Nothing matches “${wanted.text}”.` : "No experiment has this status.");
  const order = found.experiments.map((experiment) => {
    const row = rows.get(experiment.key) ?? newRow(experiment);
    rows.set(experiment.key, row);
    row.show(experiment);
    return row.element;
  });
  if (order.length !== body.children.length || order.some((row, index) => body.children[index] !== row)) body.replaceChildren(...order);
  pages.show(found.page, found.page_size, found.total);
}

function showFirst() {
  shown = false;
  replace(
    main(),
    notice(
      "No experiments yet",
      "An experiment shows each visitor one of several arms, learns which is best, and sends the traffic where it teaches most.",
      h("a", { class: "button primary", href: "/new" }, "Create the first experiment"),
      h("a", { class: "button", href: "/docs" }, "Read the API"),
    ),
  );
}

function showTabs(counts, all) {
  if (!tabs.children.length) {
    for (const [value, label] of TABS) {
      tabs.append(
        h("button", { type: "button", "data-status": value, onClick: () => want({ status: value }) }, label, " ", h("span", { class: "muted" })),
      );
    }
  }
  for (const tab of tabs.children) {
    const value = tab.dataset.status;
    say(tab.lastChild, format.count(value ? (counts[value] ?? 0) : all));
    tab.setAttribute("aria-pressed", String(value === wanted.status));
  }
}

function newRow(experiment) {
  const name = h("a", { href: `/experiments/${encodeURIComponent(experiment.key)}` });
  const key = h("span", { class: "key" }, experiment.key);
  const pill = status(experiment.status);
  const leader = h("span", { class: "leader" });
  const meter = certaintyMeter();
  const draws = h("span", { class: "number" });
  const share = h("span", { class: "number" });
  const line = h("span", { class: "spark-place" });
  const cell = (label, ...content) => h("td", { role: "cell", "data-label": label }, content);
  const element = h(
    "tr",
    { role: "row" },
    cell("Experiment", name, key),
    cell("Status", pill),
    cell("Leader", leader),
    cell("Certainty", meter),
    cell("Draws", draws),
    cell("Leader’s share", h("span", { class: "share-line" }, line, share)),
  );
  let drawn = null;
  return {
    element,
    show(now) {
      say(name, now.name || now.key);
      setStatus(pill, now.status);
      say(leader, now.leader ? now.leader.name || now.leader.key : "none yet");
      leader.classList.toggle("muted", !now.leader);
      meter.show(now);
      say(draws, format.count(now.draws));
      say(share, now.leader ? format.percent(now.share, 0) : "–");
      const values = JSON.stringify(now.sparkline);
      if (values !== drawn) replace(line, sparkline(now.sparkline));
      drawn = values;
    },
  };
}
