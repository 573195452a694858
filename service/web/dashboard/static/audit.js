// What people did to the experiment, newest first.

import { h, replace } from "./dom.js";
import { get, path } from "./api.js";
import * as format from "./format.js";

const MOVES = { start: "Started", pause: "Paused", resume: "Resumed", conclude: "Concluded", archive: "Archived" };
const PAGE = 100;

function sentence({ kind, arm, draw, details }) {
  switch (kind) {
    case "created":
      return "Created";
    case "lifecycle":
      return `${MOVES[details.move] ?? details.move}${details.by && details.by !== "request" ? ` by ${details.by}` : ""}`;
    case "patch":
      return `Settings changed: ${changes(details.after)}`;
    case "arm_added":
      return `Arm ${arm ?? details.arm?.key} added`;
    case "arm_changed":
      if (details.after?.status) return `Arm ${arm} ${details.after.status === "active" ? "enabled" : "disabled"}`;
      return `Arm ${arm} changed: ${changes(details.after)}`;
    case "correction":
      return `Reward of draw ${format.count(draw)} (${arm}) corrected: ${told(details.before)} → ${told(details.after)}`;
    case "void":
      return `Draw ${format.count(draw)} (${arm}) voided`;
    case "observation_edit":
      return `Observation ${details.observation} (${arm}) corrected: ${told(details.before)} → ${told(details.after)}`;
    case "observation_void":
      return `Observation ${details.observation} (${arm}) voided`;
    case "expiry_run":
      return `${format.count(details.expired)} silent draw${details.expired === 1 ? "" : "s"} expired`;
    default: // a kind that has no sentence of its own yet
      return (kind[0].toUpperCase() + kind.slice(1)).replaceAll("_", " ");
  }
}

const told = (state) => (state?.reward === null || state?.reward === undefined ? (state?.status ?? "–") : format.number(state.reward));

const changes = (after = {}) =>
  Object.entries(after)
    .map(([name, value]) => `${name.replaceAll("_", " ")}${short(value)}`)
    .join(", ");

function short(value) {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return text.length <= 40 ? ` → ${text}` : "";
}

/** Expiries come every second: runs of them become one entry. */
function together(events) {
  const shown = [];
  for (const event of events) {
    const last = shown.at(-1);
    if (event.kind === "expiry_run" && last?.kind === "expiry_run") {
      last.details = { ...last.details, expired: last.details.expired + event.details.expired };
    } else shown.push({ ...event });
  }
  return shown;
}

export function auditLog(key) {
  const list = h("ol", { class: "log" });
  const more = h("button", { class: "button small", type: "button", hidden: true, onClick: () => load(true) }, "Show older");
  const element = h(
    "section",
    { "aria-labelledby": "log-title" },
    h("div", { class: "section-title" }, h("h2", { id: "log-title" }, "What happened")),
    h("div", { class: "card" }, list, more),
  );
  let token = null;

  async function load(older = false) {
    const query = `?page_size=${PAGE}` + (older && token ? `&page_token=${encodeURIComponent(token)}` : "");
    const page = await get(path(key, "events") + query);
    token = page.next_page_token;
    more.hidden = !token;
    const items = together(page.events).map((event) =>
      h("li", {}, h("time", { datetime: event.at, title: format.moment(event.at) }, format.since(event.at)), h("span", {}, sentence(event))),
    );
    if (older) list.append(...items);
    else replace(list, ...items);
  }
  return { element, load };
}
