// What happened to the experiment, newest first: what people did and what was found; expiries only where they are asked for.

import { h, replace } from "./dom.js";
import { get, path } from "./api.js";
import { BY_PEOPLE, FINDINGS, doer, isByPeople, sentence } from "./audit_words.js";
import * as format from "./format.js";

const VIEWS = [
  ["people", "By people", BY_PEOPLE],
  ["findings", "Findings", FINDINGS],
  ["all", "Everything", null],
];
const PAGE = 100;
const MOST_AT_ONCE = 1000;
const MOST_PAGES_AT_ONCE = 5;
const HOUR_MS = 3600000;

/** Expiries come every second: those of an hour, by the viewer's clock, become one entry where nothing else lies between. */
export function together(events) {
  const shown = [];
  for (const event of events) {
    const last = shown.at(-1);
    const hour = Math.floor(new Date(event.at) / HOUR_MS);
    if (event.kind === "expiry_run" && last?.kind === "expiry_run" && last.hour === hour) {
      last.details = { ...last.details, expired: last.details.expired + event.details.expired };
    } else shown.push({ ...event, hour });
  }
  return shown;
}

/** The events of some kinds, newest first: read once, and then only what is new, because there may be a million expiries between them. */
function reader(key, kinds) {
  let token = null;
  let until = null;

  function page(more) {
    const query = new URLSearchParams(more);
    if (kinds) query.set("kind", kinds.join(","));
    return get(`${path(key, "events")}?${query}`);
  }
  const own = {
    events: null,
    hasOlder: () => token !== null,
    /** `asOf`: the time up to which the service's history is known to be there. */
    async renew(asOf) {
      const news = await page({ page_size: PAGE, ...(until ? { since: until } : {}) });
      const known = new Set(news.events.map((event) => event.sequence));
      if (!until || news.next_page_token) {
        own.events = news.events;
        token = news.next_page_token;
      } else own.events = [...news.events, ...own.events.filter((event) => !known.has(event.sequence))];
      until = asOf;
    },
    async older() {
      const next = await page({ page_size: kinds ? PAGE : MOST_AT_ONCE, page_token: token });
      own.events = [...own.events, ...next.events];
      token = next.next_page_token;
    },
  };
  return own;
}

/** The log; `named` gives an arm's name by its key, `changed` is called when the last change may be another one. */
export function auditLog(key, named, changed) {
  const list = h("ol", { class: "log" });
  const nothing = h("p", { class: "muted", hidden: true }, "Nothing of the kind.");
  const more = h("button", { class: "button small", type: "button", hidden: true, onClick: () => older().catch(() => {}) }, "Show older");
  const tabs = VIEWS.map(([view, words]) => h("button", { type: "button", "aria-pressed": "false", onClick: () => choose(view) }, words));
  const element = h(
    "section",
    { "aria-labelledby": "log-title", class: "what-happened" },
    h("div", { class: "section-title" }, h("h2", { id: "log-title" }, "What happened"), h("div", { class: "tabs", role: "group", "aria-label": "Of what kind" }, tabs)),
    h("div", { class: "card" }, list, nothing, more),
  );
  const readers = Object.fromEntries(VIEWS.map(([view, , kinds]) => [view, reader(key, kinds)]));
  const { people } = readers;
  let view = "people";
  let asOf = null;

  function show() {
    const { events, hasOlder } = readers[view];
    tabs.forEach((tab, index) => tab.setAttribute("aria-pressed", String(VIEWS[index][0] === view)));
    replace(
      list,
      together(events).map((event) =>
        h(
          "li",
          { class: isByPeople(event) ? "by-people" : null },
          h("time", { datetime: event.at, title: format.moment(event.at) }, event.kind === "expiry_run" ? format.about(event.at) : format.since(event.at)),
          h("span", {}, sentence(event, named), event.actor ? h("span", { class: "muted actor" }, ` ${doer(event)}`) : null),
        ),
      ),
    );
    nothing.hidden = events.length > 0;
    more.hidden = !hasOlder();
  }

  async function choose(chosen) {
    view = chosen;
    await load(asOf).catch(() => {});
  }

  /** The newest; what people did is read in any case, because the top of the page speaks of it. */
  async function load(known) {
    asOf = known;
    const asked = view;
    await Promise.all([...new Set([people, readers[asked]])].map((one) => one.renew(known)));
    if (asked === view) show();
    changed();
  }

  /** Older ones, until there is a line more: an hour may have many expiries. */
  async function older() {
    const lines = list.children.length;
    for (let turn = 0; readers[view].hasOlder() && turn < MOST_PAGES_AT_ONCE && list.children.length <= lines; turn += 1) {
      await readers[view].older();
      show();
    }
  }

  return {
    element,
    load,
    /** The last change by people, in words: undefined before it was read, null if there is none. */
    lastChange() {
      const last = people.events?.find(isByPeople);
      return people.events === null ? undefined : last ? { words: sentence(last, named), at: last.at, by: doer(last) } : null;
    },
    /** The event that concluded it, if it is among the newest. */
    conclusion: () => people.events?.find((event) => event.kind === "lifecycle" && event.details.move === "conclude") ?? null,
  };
}
