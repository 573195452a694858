// All experiments at a glance.

import { h, main, notice, replace, say } from "./dom.js";
import { asker } from "./api.js";
import { keepPolling } from "./live.js";
import { COLUMNS, listRow, zone } from "./list_row.js";
import { pager } from "./parts.js";
import { may } from "./session.js";
import { KEY_PATTERN } from "./vocabulary.js";
import * as format from "./format.js";

const TABS = [["", "All"], ["running", "Running"], ["paused", "Paused"], ["draft", "Draft"], ["concluded", "Concluded"], ["archived", "Archived"]];
const NEWEST = "-created_at";
const FIRST = { text: "", status: "", tag: "", owner: "", sort: NEWEST, page: 1 };

const given = Object.entries(Object.fromEntries(new URLSearchParams(location.search)));
const wanted = { ...FIRST, ...Object.fromEntries(given.filter(([name]) => name in FIRST)) };
wanted.page = Math.max(1, Math.min(1000000, Math.floor(Number(wanted.page)) || 1));
const orders = [NEWEST, ...COLUMNS.map(([, order]) => order).filter(Boolean)];
// What an address cannot ask for is as if it had not asked.
if (![...orders, ...orders.map(opposite)].includes(wanted.sort)) wanted.sort = NEWEST;
if (!TABS.some(([value]) => value === wanted.status)) wanted.status = "";
if (!new RegExp(`^${KEY_PATTERN}$`).test(wanted.tag)) wanted.tag = "";
const rows = new Map();
let shown = false;

const search = h("input", { type: "search", placeholder: "Search by name or key", "aria-label": "Search experiments", value: wanted.text, maxlength: 255 });
const tabs = h("div", { class: "tabs", role: "group", "aria-label": "Filter by status" });
const body = h("tbody", { role: "rowgroup" });
const headings = COLUMNS.map(([name, order, meaning]) => {
  const turn = () => want({ sort: wanted.sort === order ? opposite(order) : wanted.sort === opposite(order) ? NEWEST : order });
  const words = order ? h("button", { type: "button", class: "sorter", onClick: turn }, name) : name;
  const amount = ["Lift", "Traffic"].includes(name) ? "amount" : null;
  return { order, element: h("th", { role: "columnheader", scope: "col", class: amount, title: meaning }, words) };
});
const table = h(
  "table",
  { class: "grid experiments", role: "table", "aria-label": "Experiments" },
  h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, headings.map(({ element }) => element))),
  body,
);
const nothing = h("p", { class: "notice", hidden: true });
const pages = pager((by) => want({ page: wanted.page + by }));
const tag = choice("tag", "Any tag", "Filter by tag");
const owner = choice("owner", "Any owner", "Filter by owner");
const ordering = h("select", { class: "ordering", "aria-label": "Order", onChange: () => want({ sort: ordering.value }) });
ordering.append(
  h("option", { value: NEWEST }, "Newest first"),
  ...COLUMNS.filter(([, order]) => order).map(([name, order]) => h("option", { value: order }, `By ${name.toLowerCase()}`)),
);
const filters = h("div", { class: "filters" }, tabs, h("div", { class: "narrowing" }, tag, owner, ordering, search));
const card = h("div", { class: "card flush" }, table, nothing);
const note = h("p", { class: "list-note" });

function opposite(order) {
  return order.startsWith("-") ? order.slice(1) : `-${order}`;
}

/** A choice among what there is; hidden while there is nothing to choose from. */
function choice(name, any, label) {
  const element = h("select", { "aria-label": label, hidden: true, onChange: () => want({ [name]: element.value }) });
  let offered = null;
  element.offer = (values) => {
    const all = wanted[name] && !values.includes(wanted[name]) ? [...values, wanted[name]] : values;
    element.hidden = !all.length;
    if (JSON.stringify(all) !== offered) {
      offered = JSON.stringify(all);
      replace(element, h("option", { value: "" }, any), all.map((value) => h("option", { value }, value)));
    }
    if (element.value !== wanted[name]) element.value = wanted[name];
  };
  return element;
}

function query() {
  const asked = Object.entries(wanted).filter(([name, value]) => value !== FIRST[name]);
  return new URLSearchParams(asked).toString();
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
  const narrowed = wanted.text || wanted.tag || wanted.owner;
  if (!all && !narrowed) return showFirst();
  if (!shown) {
    shown = true;
    main().classList.add("wide");
    replace(
      main(),
      h("div", { class: "title" }, h("h1", {}, "Experiments"), may("manage") && h("a", { class: "button primary", href: "/new" }, "New experiment")),
      filters,
      card,
      pages,
      note,
    );
  }
  showTabs(found.counts, all);
  tag.offer(found.tags);
  owner.offer(found.owners);
  showOrder(found);
  table.hidden = !found.experiments.length;
  nothing.hidden = !table.hidden;
  say(nothing, wanted.text ? `Nothing matches “${wanted.text}”.` : narrowed ? "No experiment has this tag, owner and status." : "No experiment has this status.");
  const order = found.experiments.map((experiment) => {
    const row = rows.get(experiment.key) ?? listRow(experiment, want);
    rows.set(experiment.key, row);
    row.show(experiment);
    return row.element;
  });
  if (order.length !== body.children.length || order.some((row, index) => body.children[index] !== row)) body.replaceChildren(...order);
  pages.show(found.page, found.page_size, found.total);
}

/** Which column orders the list, and how far: what is computed of each experiment is not computed of thousands for their order. */
function showOrder({ ordered, total }) {
  for (const { order, element } of headings) {
    const way = order && [order, opposite(order)].includes(wanted.sort) ? (wanted.sort.startsWith("-") ? "descending" : "ascending") : null;
    if (way) element.setAttribute("aria-sort", way);
    else element.removeAttribute("aria-sort");
  }
  ordering.value = wanted.sort;
  if (ordering.selectedIndex < 0) ordering.value = opposite(wanted.sort);
  const partly = `Only this page is in that order: ${format.count(total)} experiments are too many to compare. Filter or search to order all that is left. `;
  say(note, `${ordered === "page" ? partly : ""}Times are in ${zone}.`);
}

function showFirst() {
  shown = false;
  main().classList.remove("wide");
  replace(
    main(),
    notice(
      "No experiments yet",
      "An experiment shows each visitor one of several arms, learns which is best, and sends the traffic where it teaches most.",
      may("manage") && h("a", { class: "button primary", href: "/new" }, "Create the first experiment"),
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
