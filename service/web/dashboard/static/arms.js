// The arms: one row each, best first, with the interval and the share drawn to a common scale.

import { h, say } from "./dom.js";
import { addArm, editArm, switchArm } from "./actions.js";
import { pager } from "./parts.js";
import * as format from "./format.js";

const COLUMNS = ["Arm", "Draws", "Pending", "Observed", "Mean", "Interval", "Share / target", "Actions"];
const PAGE = 25;

export function armsTable(state, changed) {
  const body = h("tbody", { role: "rowgroup" });
  const table = h(
    "table",
    { class: "grid arms", role: "table", "aria-label": "Arms" },
    h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, COLUMNS.map((name) => h("th", { role: "columnheader", scope: "col" }, name === "Actions" ? h("span", { class: "unseen" }, name) : name)))),
    body,
  );
  const search = h("input", { type: "search", placeholder: "Search arms", "aria-label": "Search arms" });
  const add = h("button", { class: "button small", type: "button", onClick: () => addArm(state().experiment, changed) }, "Add arm");
  const nothing = h("p", { class: "notice", hidden: true }, "No arm matches.");
  const pages = pager((by) => {
    page += by;
    show(state().recommendation, true);
  });
  const rows = new Map();
  let page = 1;
  search.addEventListener("input", () => {
    page = 1;
    show(state().recommendation, true);
  });
  const element = h(
    "section",
    { "aria-labelledby": "arms-title" },
    h("div", { class: "section-title" }, h("h2", { id: "arms-title" }, "Arms"), h("div", { class: "actions" }, search, add)),
    h("div", { class: "card flush" }, table, nothing),
    pages,
  );

  function show(now, turned = false) {
    const { experiment } = state();
    const sign = experiment.reward.goal === "minimize" ? 1 : -1;
    const wanted = search.value.trim().toLowerCase();
    search.hidden = now.arms.length <= 8 && !wanted;
    add.hidden = now.status === "archived";
    const worth = (arm) => (arm.status === "disabled" ? 2e200 : arm.mean === null ? 1e200 : sign * arm.mean);
    const found = now.arms
      .filter((arm) => !wanted || arm.arm.includes(wanted) || arm.name.toLowerCase().includes(wanted))
      .map((arm, index) => ({ arm, index }))
      .sort((a, b) => worth(a.arm) - worth(b.arm) || b.arm.observations - a.arm.observations || a.index - b.index)
      .map(({ arm }) => arm);
    const scale = scaleOf(now.arms, experiment.reward.kind);
    const most = Math.max(...now.arms.map((arm) => Math.max(arm.share, arm.target_share)), 0.01);
    page = Math.min(page, Math.max(1, Math.ceil(found.length / PAGE)));
    const order = found.slice((page - 1) * PAGE, page * PAGE).map((arm) => {
      if (!rows.has(arm.arm)) rows.set(arm.arm, newRow(arm.arm, state, changed));
      const row = rows.get(arm.arm);
      row.show(arm, now, scale, most);
      return row.element;
    });
    const moved = order.length !== body.children.length || order.some((row, index) => body.children[index] !== row);
    const inUse = body.contains(document.activeElement) || body.matches(":hover");
    const same = order.length === body.children.length && order.every((row) => body.contains(row));
    if (moved && (turned || !same || !inUse)) body.replaceChildren(...order); // rows do not jump away under a hand
    table.hidden = !found.length;
    nothing.hidden = found.length > 0;
    pages.show(page, PAGE, found.length);
  }
  return { element, show };
}

/** From the lowest to the highest number that is shown. */
function scaleOf(arms, kind) {
  const values = arms.flatMap((arm) => [...(arm.interval ?? []), ...(arm.mean === null ? [] : [arm.mean])]);
  if (!values.length) return null;
  let low = Math.min(...values);
  let high = Math.max(...values);
  const air = (high - low) * 0.05 || Math.abs(low) * 0.05 || 0.5;
  low = kind === "binary" ? Math.max(0, low - air) : low - air;
  high = kind === "binary" ? Math.min(1, high + air) : high + air;
  return (value) => Math.min(1, Math.max(0, (value - low) / (high - low)));
}

function newRow(key, state, changed) {
  const cell = (label, ...content) => h("td", { role: "cell", "data-label": label }, content);
  const numeral = () => h("span", { class: "number" });
  const name = h("strong", { class: "arm-name" });
  const tags = h("span", { class: "tags" });
  const [draws, pending, observations, mean, bounds, share, target] = Array.from({ length: 7 }, numeral);
  const range = h("span", { class: "range", "aria-hidden": "true" }, h("span", { class: "reach" }), h("span", { class: "point" }));
  const bar = h("span", { class: "share", "aria-hidden": "true" }, h("span", { class: "fill" }), h("span", { class: "mark" }));
  target.classList.add("muted");
  const armOf = () => state().experiment.arms.find((arm) => arm.key === key);
  const edit = h("button", { class: "button small quiet", type: "button", onClick: () => editArm(state().experiment, armOf(), changed) }, "Edit");
  const toggle = h("button", { class: "button small quiet", type: "button", onClick: () => switchArm(state().experiment, armOf(), changed) });
  const element = h(
    "tr",
    { role: "row", "data-arm": key },
    cell("Arm", h("span", { class: "arm-title" }, name, tags), h("span", { class: "key" }, key)),
    cell("Draws", draws),
    cell("Pending", pending),
    cell("Observed", observations),
    cell("Mean", mean),
    cell("Interval", range, bounds),
    cell("Share / target", bar, h("span", { class: "pair" }, share, " / ", target)),
    cell("Actions", h("span", { class: "actions" }, edit, toggle)),
  );
  let tagged = "";

  function show(arm, now, scale, most) {
    const { kind } = state().experiment.reward;
    const label = arm.name || arm.arm;
    say(name, label);
    say(draws, format.count(arm.draws));
    say(pending, format.count(arm.pending));
    say(observations, format.count(arm.observations));
    say(mean, format.reward(arm.mean, kind));
    say(bounds, arm.interval ? `${format.reward(arm.interval[0], kind)} to ${format.reward(arm.interval[1], kind)}` : "–");
    say(share, format.percent(arm.share));
    say(target, format.percent(arm.target_share));
    bar.style.setProperty("--part", arm.share / most);
    bar.style.setProperty("--mark", arm.target_share / most);
    range.hidden = !scale || arm.mean === null;
    if (!range.hidden) {
      const [low, high] = arm.interval ?? [arm.mean, arm.mean];
      range.style.setProperty("--low", scale(low));
      range.style.setProperty("--high", scale(high));
      range.style.setProperty("--at", scale(arm.mean));
    }
    const leads = arm.arm === now.arm;
    const labels = [
      arm.arm === now.concluded_arm && ["winner", "good"],
      leads && now.concluded_arm === null && ["leads", "good"],
      arm.arm === now.runner_up && now.concluded_arm === null && ["runner-up", ""],
      arm.status === "disabled" && ["disabled", ""],
      now.drift.includes(arm.arm) && ["drifting", "warn"],
    ].filter(Boolean);
    if (JSON.stringify(labels) !== tagged) tags.replaceChildren(...labels.map(([text, tone]) => h("span", { class: `tag ${tone}` }, text)));
    tagged = JSON.stringify(labels);
    element.classList.toggle("leads", now.concluded_arm === null ? leads : arm.arm === now.concluded_arm);
    element.classList.toggle("disabled", arm.status === "disabled");
    const frozen = now.status === "archived";
    edit.hidden = frozen;
    toggle.hidden = frozen || arm.arm === now.concluded_arm;
    say(toggle, arm.status === "active" ? "Disable" : "Enable");
    edit.setAttribute("aria-label", `Edit ${label}`);
    toggle.setAttribute("aria-label", `${toggle.textContent} ${label}`);
  }
  return { element, show };
}
