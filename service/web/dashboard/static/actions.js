// Every move that changes an experiment, each behind a question that says what it will do.

import { h } from "./dom.js";
import { path, send } from "./api.js";
import { confirmed } from "./dialog.js";
import { field, json, numeric } from "./fields.js";

const MOVES = {
  draft: ["start"],
  running: ["pause", "conclude"],
  paused: ["resume", "conclude"],
  concluded: ["archive"],
  archived: [],
};
const WORDS = {
  start: ["Start", ["Visitors begin to get arms and rewards begin to count.", "Policy, reward and stickiness are fixed from then on."]],
  pause: ["Pause", ["No visitor gets an arm while it is paused: asks are refused.", "Rewards for earlier draws still count, and you can resume at any time."]],
  resume: ["Resume", ["Visitors get arms again, from where it stopped. Nothing was lost."]],
  conclude: ["Conclude", ["From now on every visitor gets the arm below and no draws are recorded. Late rewards still count.", "This cannot be undone."]],
  archive: ["Archive", ["Everything is frozen: no asks, no rewards, no changes. The data stays readable.", "This cannot be undone."]],
};

const nameOf = (one) => one.name || one.key || one.arm;

/** The buttons for the moves that are possible now. `state()` gives the experiment and the recommendation. */
export function lifecycle(state, changed) {
  const element = h("div", { class: "actions lifecycle", role: "group", "aria-label": "Lifecycle" });
  let shown = null;
  element.show = (status) => {
    if (status === shown) return;
    shown = status;
    const moves = MOVES[status] ?? [];
    element.replaceChildren(
      ...moves.map((move, index) =>
        h("button", { class: index || move === "pause" ? "button" : "button primary", type: "button", onClick: () => take(move) }, WORDS[move][0]),
      ),
    );
  };
  async function take(move) {
    const { experiment, recommendation } = state();
    const [action, text] = WORDS[move];
    const question = { title: `${action} “${nameOf(experiment)}”?`, text, action, grave: move === "conclude" || move === "archive" };
    if (move === "conclude") {
      const active = recommendation.arms.filter((arm) => arm.status === "active");
      const choice = h(
        "select",
        { name: "arm", required: true },
        recommendation.arm ? null : h("option", { value: "" }, "Choose an arm"),
        active.map((arm) =>
          h("option", { value: arm.arm, selected: arm.arm === recommendation.arm }, nameOf(arm) + (arm.arm === recommendation.arm ? " (recommended)" : "")),
        ),
      );
      question.fields = [field("Arm to serve", "/arm", choice)];
    }
    question.run = (form) => {
      const body = move === "conclude" ? { arm: form.elements.arm.value || undefined } : undefined;
      return send("POST", path(experiment.key, move), body);
    };
    if (await confirmed(question)) changed();
  }
  return element;
}

function armFields(arm) {
  const name = h("input", { name: "name", value: arm?.name ?? "", maxlength: 255, autocomplete: "off" });
  const value = h("textarea", { name: "value", rows: 3, spellcheck: "false", class: "code" });
  value.value = arm && arm.value !== null ? JSON.stringify(arm.value, null, 2) : "";
  const floor = h("input", { name: "floor", inputmode: "decimal", value: arm ? String(+(arm.min_share * 100).toFixed(6)) : "0" });
  return [
    field("Name", "/name", name),
    field("Value (JSON)", "/value", value, "Handed to your code untouched."),
    field("Floor (% of the traffic)", "/min_share", floor, "The arm gets at least this share. 0 means none."),
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

export async function editSettings(experiment, changed) {
  const name = h("input", { name: "name", value: experiment.name, maxlength: 255 });
  const description = h("textarea", { name: "description", rows: 4, maxlength: 10000 });
  description.value = experiment.description;
  const confidence = h("input", { name: "confidence", inputmode: "decimal", value: String(+(experiment.confidence * 100).toFixed(6)) });
  const done = await confirmed({
    title: `Change the settings of “${nameOf(experiment)}”?`,
    text: "Another confidence changes how wide the intervals are and when arms count as separated, from now on.",
    action: "Save settings",
    fields: [
      field("Name", "/name", name),
      field("Description", "/description", description),
      field("Confidence (%)", "/confidence", confidence),
    ],
    run: (form) =>
      send("PATCH", path(experiment.key), {
        name: form.elements.name.value,
        description: form.elements.description.value,
        confidence: numeric(form.elements.confidence, 100),
      }),
  });
  if (done) changed();
}
