// Every move that changes an experiment, each behind a question that says what it will do.

import { h } from "./dom.js";
import { Problem, path, send } from "./api.js";
import { conclude } from "./conclude.js";
import { confirmed } from "./dialog.js";
import { field, json, numeric } from "./fields.js";
import { shown as shownIn } from "./form_errors.js";
import { may } from "./session.js";
import { nameOf } from "./standing.js";

const MOVES = {
  draft: ["start"],
  running: ["pause", "conclude"],
  paused: ["resume", "conclude"],
  concluded: ["reopen", "archive"],
  archived: [],
};
const WORDS = {
  start: ["Start", ["Visitors begin to get arms and rewards begin to count.", "Policy, reward and stickiness are fixed from then on."]],
  pause: ["Pause", ["No visitor gets an arm while it is paused: asks are refused.", "Rewards for earlier draws still count, and you can resume at any time."]],
  resume: ["Resume", ["Visitors get arms again, from where it stopped. Nothing was lost."]],
  conclude: ["Conclude"],
  reopen: ["Reopen", ["The conclusion is taken back, and the experiment is paused: asks are refused until you resume it.", "A rule to conclude by itself is taken away, because it could conclude it again at once."]],
  archive: ["Archive", ["Everything is frozen: no asks, no rewards, no changes. The data stays readable.", "There is no way back but to make a duplicate."]],
};

/** The buttons for the moves that are possible now. `state()` gives the experiment, the recommendation and the forecast. */
export function lifecycle(state, changed) {
  const element = h("div", { class: "actions lifecycle", role: "group", "aria-label": "Lifecycle" });
  let shown = null;
  element.show = (status) => {
    if (status === shown) return;
    shown = status;
    const moves = may("manage") ? (MOVES[status] ?? []) : [];
    element.replaceChildren(
      ...moves.map((move, index) =>
        h("button", { class: index || move === "pause" || move === "reopen" ? "button" : "button primary", type: "button", onClick: () => take(move) }, WORDS[move][0]),
      ),
    );
  };
  async function take(move) {
    if (move === "conclude") return conclude(state, changed);
    const { experiment } = state();
    const [action, text] = WORDS[move];
    const done = await confirmed({
      title: `${action} “${nameOf(experiment)}”?`,
      text,
      action,
      grave: move === "archive",
      run: () => send("POST", path(experiment.key, move)),
    });
    if (done) changed();
  }
  return element;
}

const goTo = (key) => location.assign(`/experiments/${encodeURIComponent(key)}`);

/** A draft like it, under another key. */
export async function duplicate(experiment) {
  const key = h("input", { name: "key", required: true, maxlength: 64, autocomplete: "off", spellcheck: "false", value: `${experiment.key.slice(0, 62)}-2` });
  let made = null;
  const done = await confirmed({
    title: `Duplicate “${nameOf(experiment)}”?`,
    text: "A draft with the same settings and arms, and none of the data.",
    action: "Duplicate",
    fields: [field("Key of the duplicate", "/key", key, "Lower-case letters, digits, dots, dashes, underscores; fixed for ever.")],
    run: async (form) => {
      try {
        made = await send("POST", path(experiment.key, "duplicate"), { key: form.elements.key.value.trim() });
      } catch (problem) {
        throw problem.code === "experiment_exists" ? new Problem(409, { detail: problem.message, errors: [{ pointer: "/key", detail: problem.message }] }) : problem;
      }
    },
  });
  if (done) goTo(made.key);
}

/** Gone with all its data: a draft after a question, an archived one when its key is typed. */
export async function remove(experiment) {
  const archived = experiment.status === "archived";
  const typed = h("input", { name: "confirm", autocomplete: "off", spellcheck: "false" });
  const done = await confirmed({
    title: `Delete “${nameOf(experiment)}”?`,
    text: archived ? "The experiment goes with all its assignments, rewards and history. Nothing brings it back." : "The draft goes with its settings and arms. Nothing brings it back.",
    action: "Delete",
    grave: true,
    fields: archived ? [field(`Type its key, ${experiment.key}, to delete it`, "/confirm", typed)] : undefined,
    run: () => {
      if (archived && typed.value.trim() !== experiment.key) {
        throw new Problem(422, { detail: "Another key.", errors: [{ pointer: "/confirm", detail: `This is not its key: ${experiment.key}` }] });
      }
      return send("DELETE", `${path(experiment.key)}?confirm=${encodeURIComponent(experiment.key)}`);
    },
  });
  if (done) location.assign("/");
}

function armFields(arm) {
  const name = h("input", { name: "name", value: arm?.name ?? "", maxlength: 255, autocomplete: "off" });
  const value = h("textarea", { name: "value", rows: 3, spellcheck: "false", class: "code" });
  value.value = arm && arm.value !== null ? JSON.stringify(arm.value, null, 2) : "";
  const floor = h("input", { name: "floor", inputmode: "decimal", value: arm ? String(+(arm.min_share * 100).toFixed(6)) : "0" });
  return [
    field("Name", "/name", name),
    field("Value (JSON)", "/value", value, "Handed to your code untouched."),
    field("Floor (% of the traffic)", "/min_share", shownIn(floor, 100, "%"), "The arm gets at least this share. 0 means none."),
  ];
}

const armBody = (form) => ({
  name: form.elements.name.value,
  value: json(form.elements.value),
  min_share: numeric(form.elements.floor, 100) ?? 0,
});

export async function addArm(experiment, changed) {
  const key = h("input", { name: "key", required: true, maxlength: 64, autocomplete: "off", spellcheck: "false" });
  const done = await confirmed({
    title: `Add an arm to “${nameOf(experiment)}”?`,
    text: "The new arm joins at once and is drawn as often as the policy needs to learn about it. An arm can be disabled later, not removed.",
    action: "Add arm",
    fields: [field("Key", "/key", key, "Lower-case letters, digits, dots, dashes, underscores."), ...armFields(null)],
    run: (form) => {
      const body = { key: form.elements.key.value.trim(), ...armBody(form) };
      if (!body.name) delete body.name;
      return send("POST", path(experiment.key, "arms"), body);
    },
  });
  if (done) changed();
}

export async function editArm(experiment, arm, changed) {
  const done = await confirmed({
    title: `Change “${nameOf(arm)}”?`,
    text: "The new name, value and floor hold for visitors from now on. What was learned about the arm stays.",
    action: "Save arm",
    fields: armFields(arm),
    run: (form) => send("PATCH", path(experiment.key, "arms", arm.key), armBody(form)),
  });
  if (done) changed();
}

export async function switchArm(experiment, arm, changed) {
  const off = arm.status === "active";
  const done = await confirmed({
    title: off ? `Disable “${nameOf(arm)}”?` : `Enable “${nameOf(arm)}”?`,
    text: off
      ? "It is no longer drawn and no longer recommended. Its data stays, late rewards still count, and you can enable it again."
      : "It is drawn again, beside what was learned about it earlier.",
    action: off ? "Disable arm" : "Enable arm",
    grave: off,
    run: () => send("PATCH", path(experiment.key, "arms", arm.key), { status: off ? "disabled" : "active" }),
  });
  if (done) changed();
}
