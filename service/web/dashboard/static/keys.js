// The keys of the API: who may do what.

import { h, main, notice, replace, say } from "./dom.js";
import { get, send } from "./api.js";
import { copier } from "./copying.js";
import { confirmed, shown } from "./dialog.js";
import { createKey } from "./key_form.js";
import { field } from "./fields.js";
import { showConnection } from "./live.js";
import { isOpen, may } from "./session.js";
import * as format from "./format.js";

const PAGE = 100;
const COLUMNS = ["Label", "May", "Experiments", "Status", "Last used"];
const GRACE = [[3600, "One hour"], [86400, "One day"], [604800, "Seven days"], [0, "None: it ends now"]];
const CLOSING = "The first key closes this service: from then on everybody needs one. Make it one that may administer, and keep its secret.";

const body = h("tbody", { role: "rowgroup" });
const table = h(
  "table",
  { class: "grid keys", role: "table", "aria-label": "Keys" },
  h(
    "thead",
    { role: "rowgroup" },
    h("tr", { role: "row" }, COLUMNS.map((name) => h("th", { role: "columnheader", scope: "col" }, name)), h("th", { role: "columnheader", scope: "col" }, h("span", { class: "unseen" }, "Actions"))),
  ),
  body,
);
const nothing = h("p", { class: "notice" });
const more = h("button", { class: "button small", type: "button", hidden: true, onClick: () => load(token) }, "Show older");
let token = null;

/** The newest keys, or those older than what is shown. */
async function load(older = null) {
  const found = await get(`/v1/keys?${new URLSearchParams({ page_size: PAGE, ...(older ? { page_token: older } : {}) })}`);
  if (!older) body.replaceChildren();
  body.append(...found.keys.map(row));
  token = found.next_page_token;
  more.hidden = token === null;
  table.hidden = !body.children.length;
  nothing.hidden = !table.hidden;
  say(nothing, isOpen() ? CLOSING : "No key is stored: whoever is signed in has the administrator's.");
  showConnection("live");
}

function row(key) {
  const cell = (label, ...content) => h("td", { role: "cell", "data-label": label }, content);
  const good = key.status === "active";
  const button = (word, run) => h("button", { class: "button small quiet", type: "button", "aria-label": `${word} ${key.label}`, onClick: () => run(key) }, word);
  return h(
    "tr",
    { role: "row", "data-key": key.id, class: good ? null : "over" },
    cell("Label", h("strong", {}, key.label), key.kind === "public" ? [" ", h("span", { class: "tag" }, "public")] : null, h("span", { class: "key" }, `${key.prefix}…`)),
    cell("May", key.scopes.join(", ")),
    cell("Experiments", key.experiments?.join(", ") ?? "all"),
    cell("Status", statusOf(key)),
    cell("Last used", key.last_used_at ? h("time", { datetime: key.last_used_at, title: format.moment(key.last_used_at) }, format.since(key.last_used_at)) : "never"),
    cell("Actions", good ? h("span", { class: "actions" }, key.successor ? null : button("Rotate", rotate), button("Revoke", revoke)) : null),
  );
}

function statusOf(key) {
  if (key.status === "revoked") return `revoked ${format.since(key.revoked_at)}`;
  if (key.status === "expired") return `expired ${format.since(key.expires_at)}`;
  return key.expires_at ? `active until ${format.moment(key.expires_at)}` : "active";
}

async function create() {
  const made = await createKey(isOpen() ? CLOSING : null);
  if (!made) return;
  await showSecret(made);
  await load();
}

async function rotate(key) {
  const grace = h("select", { name: "grace" }, GRACE.map(([seconds, words]) => h("option", { value: seconds }, words)));
  let made = null;
  const done = await confirmed({
    title: `Rotate “${key.label}”?`,
    text: "A new key takes its place and may do the same. The old one is good for the time below, and no longer.",
    action: "Rotate",
    fields: [field("The old one goes on for", "/grace_seconds", grace)],
    run: async () => (made = await send("POST", `/v1/keys/${key.id}/rotate`, { grace_seconds: Number(grace.value) })),
  });
  if (!done) return;
  await showSecret(made);
  await load();
}

async function revoke(key) {
  const done = await confirmed({
    title: `Revoke “${key.label}”?`,
    text: "Within two seconds nothing takes it any more, and whoever signed in with it is signed out. Nothing brings it back.",
    action: "Revoke",
    grave: true,
    run: () => send("DELETE", `/v1/keys/${key.id}`),
  });
  if (done) await load();
}

/** The one time that a secret is there to be seen. */
function showSecret({ label, secret }) {
  const code = h("code", { class: "code secret" }, secret);
  return shown(`The key “${label}”`, h("p", {}, "Copy it now: it is stored nowhere, and shown this once."), h("p", {}, code), copier(code));
}

if (may("admin")) {
  replace(
    main(),
    h("div", { class: "title" }, h("h1", {}, "Keys"), h("button", { class: "button primary", type: "button", onClick: create }, "New key")),
    h("p", { class: "description" }, "Whoever sends one of these may do what it says. What was done with them is in each experiment's log."),
    h("div", { class: "card flush" }, table, nothing),
    h("p", {}, more),
  );
  await load();
} else {
  replace(main(), notice("Not with this key", "Keys are for those who administer: that needs the scope “admin”.", h("a", { class: "button", href: "/" }, "All experiments")));
}
