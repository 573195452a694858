// The arms: one row each, best first or as the reader sorts them, folded where there are many.

import { h, replace, say } from "./dom.js";
import { addArm } from "./actions.js";
import { armRow } from "./arm_row.js";
import { armNotes } from "./arm_notes.js";
import { pager } from "./parts.js";
import { may } from "./session.js";
import { compare, standing } from "./standing.js";
import * as format from "./format.js";

const FOLD = 10;
const PAGE = 50;

/** What each column counts, and what it is sorted by: larger values first, as far as `first` does not say otherwise. */
const COLUMNS = [
  { key: "arm", label: "Arm", value: (arm) => (arm.name || arm.arm).toLowerCase(), first: "ascending", counts: "The name of the arm, and its key." },
  { key: "lift", label: "Lift", value: (arm, { lift }) => lift(arm) },
  { key: "mean", label: "Mean", value: (arm) => arm.mean },
  { key: "evidence", label: "Evidence", value: (arm) => arm.evidence },
  { key: "draws", label: "Draws", value: (arm) => arm.draws, counts: "How often the arm was given to a visitor, with observations that were told without an ask." },
  { key: "observations", label: "Observed", value: (arm) => arm.observations, counts: "Draws of which the reward is known: told, or put there by expiry." },
  { key: "pending", label: "Pending", value: (arm) => arm.pending, counts: "Draws that still wait for their reward." },
  { key: "share", label: "Share / target", value: (arm) => arm.share, counts: "The arm's part of all draws so far, on a scale from 0 to 100%. The mark, and the second number, is the part that the policy wants it to have now." },
];

function describedColumns({ experiment, recommendation }) {
  const sure = format.percent(recommendation.confidence).replace(".0%", "%");
  const { control } = experiment;
  const lift = control
    ? `The arm's mean less that of the control, with the interval that holds at ${sure} however often you look; the ratio of the two.`
    : "The arm's mean less that of the leader. Name a control in the settings to compare with what is live today, with intervals.";
  return {
    lift: experiment.reward.goal === "minimize" ? `${lift} Less is better here.` : lift,
    mean: `The mean of the arm's rewards, and the interval in which the true one lies at ${sure}, however often you look. All arms are drawn to one scale.`,
    evidence: "How much of the evidence is there that it takes to show that the leader is better than this arm. At 100% it is shown, and stays so.",
  };
}

export function armsTable(state, changed) {
  const body = h("tbody", { role: "rowgroup" });
  const tips = new Map();
  const heads = new Map();
  let sorting = null; // by mean and so on, best first
  const head = ({ key, label }) => {
    const tip = h("span", { class: "tip", "aria-hidden": "true", id: `tip-${key}` }); // read out as the description of the button
    const button = h("button", { type: "button", class: "sort", "aria-describedby": `tip-${key}`, onClick: () => sort(key) }, label);
    const element = h("th", { role: "columnheader", scope: "col", "data-column": key }, button, tip);
    tips.set(key, tip);
    heads.set(key, element);
    return element;
  };
  const actions = h("th", { role: "columnheader", scope: "col" }, h("span", { class: "unseen" }, "Actions"));
  const table = h(
    "table",
    { class: "grid arms", role: "table", "aria-label": "Arms" },
    h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, COLUMNS.map(head), actions)),
    body,
  );
  const meanings = h("details", { class: "meanings" }, h("summary", {}, "What the columns count"), h("dl", { class: "facts" }));
  const search = h("input", { type: "search", placeholder: "Search arms", "aria-label": "Search arms" });
  const add = h("button", { class: "button small", type: "button", onClick: () => addArm(state().experiment, changed) }, "Add arm");
  const nothing = h("p", { class: "notice", hidden: true }, "No arm matches.");
  const unfold = h("button", { class: "button small", type: "button", hidden: true, onClick: () => turn(() => (folded = !folded)) });
  const notes = armNotes();
  const pages = pager((by) => turn(() => (page += by)));
  const rows = new Map();
  let meant = "";
  let page = 1;
  let folded = true;
  search.addEventListener("input", () => turn(() => (page = 1)));
  const element = h(
    "section",
    { "aria-labelledby": "arms-title", class: "arms-section" },
    h("div", { class: "section-title" }, h("h2", { id: "arms-title" }, "Arms"), h("div", { class: "actions" }, search, add)),
    h("div", { class: "card flush" }, table, nothing, h("p", { class: "fold" }, unfold)),
    notes,
    pages,
    meanings,
  );

  function turn(change) {
    change();
    show(state().recommendation, true);
  }

  function sort(key) {
    const column = COLUMNS.find((one) => one.key === key);
    const first = column.first ?? "descending";
    const other = first === "ascending" ? "descending" : "ascending";
    const direction = sorting?.key !== key ? first : sorting.direction === first ? other : null;
    turn(() => (sorting = direction ? { key, direction } : null));
  }

  /** Best first, disabled ones last; or by a column, unknown values last. */
  function ordered(arms, facts) {
    const { stand } = facts;
    const places = new Map(stand.ranked.map((arm, index) => [arm, index]));
    const usual = (a, b) => (places.get(a) ?? Infinity) - (places.get(b) ?? Infinity) || 0;
    if (!sorting) return [...arms].sort(usual);
    const { value } = COLUMNS.find((one) => one.key === sorting.key);
    const sign = sorting.direction === "ascending" ? 1 : -1;
    return [...arms].sort((a, b) => {
      const [one, two] = [value(a, facts), value(b, facts)];
      if (one === null || two === null) return (one === null) - (two === null) || usual(a, b);
      return sign * compare(one, two) || usual(a, b);
    });
  }

  function show(now, turned = false) {
    const { experiment } = state();
    const facts = factsOf(experiment, now);
    const wanted = search.value.trim().toLowerCase();
    search.hidden = now.arms.length <= 8 && !wanted;
    add.hidden = now.status === "archived" || !may("manage");
    const found = ordered(now.arms.filter((arm) => !wanted || arm.arm.includes(wanted) || arm.name.toLowerCase().includes(wanted)), facts);
    const folds = folded && !wanted && found.length > FOLD + 2;
    page = folds ? 1 : Math.min(page, Math.max(1, Math.ceil(found.length / PAGE)));
    const order = (folds ? firstOf(found, facts.stand.control) : found.slice((page - 1) * PAGE, page * PAGE)).map((arm) => {
      if (!rows.has(arm.arm)) rows.set(arm.arm, armRow(arm.arm, state, changed));
      const row = rows.get(arm.arm);
      row.show(arm, facts);
      return row.element;
    });
    const moved = order.length !== body.children.length || order.some((row, index) => body.children[index] !== row);
    const inUse = body.contains(document.activeElement) || body.matches(":hover");
    const same = order.length === body.children.length && order.every((row) => body.contains(row));
    if (moved && (turned || !same || !inUse)) body.replaceChildren(...order); // rows do not jump away under a hand
    for (const [key, element] of heads) {
      if (sorting?.key === key) element.setAttribute("aria-sort", sorting.direction);
      else element.removeAttribute("aria-sort");
    }
    describe(experiment, now);
    table.hidden = !found.length;
    nothing.hidden = found.length > 0;
    unfold.hidden = !!wanted || found.length <= FOLD + 2;
    say(unfold, folded ? `Show all ${format.count(found.length)} arms` : `Show the first ${FOLD} only`);
    unfold.setAttribute("aria-expanded", String(!folded));
    notes.show(experiment, facts);
    pages.hidden = folds;
    if (!folds) pages.show(page, PAGE, found.length);
  }

  function describe(experiment, recommendation) {
    const counted = describedColumns({ experiment, recommendation });
    const words = (column) => column.counts ?? counted[column.key];
    COLUMNS.forEach((column) => say(tips.get(column.key), words(column)));
    const text = COLUMNS.map(words).join("");
    if (text === meant) return;
    meant = text;
    replace(meanings.querySelector("dl"), COLUMNS.map((column) => h("div", {}, h("dt", {}, column.label), h("dd", {}, words(column)))));
  }
  return { element, show };
}

/** The first ones, and the control with them: the others are measured against it. */
function firstOf(found, control) {
  const first = found.slice(0, FOLD);
  return !control || first.includes(control) ? first : [...first.slice(0, -1), control];
}

/** What all rows have in common: how to write numbers, the scale of the intervals, and what a lift is measured from. */
function factsOf(experiment, now) {
  const { kind } = experiment.reward;
  const stand = standing(experiment, now);
  const write = format.rewards(kind, now.arms.map((arm) => arm.mean));
  const base = stand.control ?? stand.leader;
  const lift = (arm) => (stand.control ? (arm.lift?.difference ?? null) : arm === base || arm.mean === null || !base ? null : arm.mean - base.mean);
  return { now, stand, write, scale: scaleOf(now.arms, kind), lift };
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
