// The form for a new experiment.

import { h, main, notice, replace } from "./dom.js";
import { Problem, send } from "./api.js";
import { clearErrors, field, json, mark, numeric, placeErrors } from "./fields.js";
import { forgetWhenMended, inTypedUnits, shown } from "./form_errors.js";
import { planner } from "./plan.js";
import { may } from "./session.js";

const text = (name, more = {}) => h("input", { name, autocomplete: "off", ...more });
const decimal = (name, value = "") => text(name, { inputmode: "decimal", value });
const choice = (name, options) => h("select", { name }, options.map(([value, label]) => h("option", { value }, label)));

function group(title, ...content) {
  return h("fieldset", { class: "card" }, h("legend", {}, title), content);
}

/** Shows parts of the form only while they mean something. */
function onlyWhen(control, value, ...parts) {
  const update = () => parts.forEach((part) => (part.hidden = ![value].flat().includes(control.type === "checkbox" ? control.checked : control.value)));
  control.addEventListener("change", update);
  update();
  return parts;
}

const form = h("form", { novalidate: true, class: "create" });
const problems = h("p", { class: "form-error", role: "alert", hidden: true });

const name = text("name", { maxlength: 255 });
const key = text("key", { maxlength: 64, spellcheck: "false" });
const description = h("textarea", { name: "description", rows: 2, maxlength: 10000 });
const slug = (words) => words.normalize("NFKD").toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-+|-+$/g, "").slice(0, 64);
let typed = false;
key.addEventListener("input", () => (typed = key.value !== ""));
name.addEventListener("input", () => typed || (key.value = slug(name.value)));

const arms = h("div", { class: "arm-rows" });
const control = choice("control", [["", "None"]]);
arms.addEventListener("input", nameControls);
let counter = 0;

function addRow(armKey = "") {
  counter += 1;
  const row = h("div", { class: "arm-row", role: "group" });
  const remove = h("button", { class: "button small quiet", type: "button", onClick: () => dropRow(row) }, "Remove");
  replace(
    row,
    field("Key", "", text("arm-key", { value: armKey, maxlength: 64, spellcheck: "false" })),
    field("Name", "", text("arm-name", { maxlength: 255 })),
    field("Value (JSON)", "", text("arm-value", { class: "code", spellcheck: "false", placeholder: '{"color": "green"}' })),
    field("Floor (%)", "", shown(decimal("arm-floor", "0"), 100, "%")),
    remove,
  );
  arms.append(row);
  renumber();
  return row;
}

function dropRow(row) {
  row.remove();
  renumber();
  add.focus();
}

/** The pointers follow the order of the rows. */
function renumber() {
  [...arms.children].forEach((row, index) => {
    row.setAttribute("aria-label", `Arm ${index + 1}`);
    const [armKey, armName, value, floor] = row.querySelectorAll("input");
    Object.entries({ key: armKey, name: armName, value, min_share: floor }).forEach(([part, control]) => (control.dataset.pointer = `/arms/${index}/${part}`));
    row.querySelector("button").hidden = arms.children.length <= 2;
  });
  nameControls();
  form.dispatchEvent(new Event("change"));
}

/** Each arm may be the control; whichever row was chosen stays chosen when it is renamed. */
function nameControls() {
  const chosen = control.selectedOptions[0]?.row;
  const options = [...arms.children].map((row, index) => {
    const option = h("option", { value: index }, row.querySelector("input").value.trim() || `Arm ${index + 1}`);
    option.row = row;
    option.selected = row === chosen;
    return option;
  });
  replace(control, h("option", { value: "" }, "None"), options);
  if (chosen && !chosen.isConnected) control.value = "";
}

const add = h("button", { class: "button small", type: "button", onClick: () => addRow().querySelector("input").focus() }, "Add arm");
addRow("control");
addRow("variant");
control.value = "0";

const rewardKind = choice("reward-kind", [["binary", "Yes or no (0 or 1): conversion, click"], ["bounded", "A number between two bounds"], ["real", "Any number: revenue, time"]]);
const goal = choice("goal", [["maximize", "More is better"], ["minimize", "Less is better"]]);
const low = decimal("min");
const high = decimal("max");
const silence = choice("silence", [["wait", "Wait for the reward for ever"], ["count", "Count silence as a reward"], ["drop", "Drop silent draws"]]);
const after = shown(decimal("after", "24"), 1 / 3600, " hours");
const silent = decimal("silent", "0");
const sticky = h("input", { type: "checkbox", name: "sticky" });
const confidence = shown(decimal("confidence", "95"), 100, "%");
const policy = choice("policy", [["auto", "Automatic: what is recommended for these rewards and arms"], ["simple_tracking", "Simple Tracking: adapts with every draw"], ["almost_tracking", "Almost Tracking: adapts in batches"], ["uniform", "Uniform: equal shares"]]);
const sharpness = decimal("sharpness", "1");
const guard = decimal("guard", "0");
const batch = text("batch", { inputmode: "numeric" });
const seed = text("seed", { inputmode: "numeric" });
const byItself = choice("by-itself", [["", "Never: a person concludes"], ["separated", "Once the best arm is separated"], ["decided", "Once it is decided: separated, or nothing worthwhile is left"], ["beats_control", "Once an arm beats the control"]]);
const least = text("least", { inputmode: "numeric", value: "1000" });
const start = choice("status", [["running", "Start at once"], ["draft", "Keep as a draft"]]);
const check = (label, control) => h("label", { class: "check" }, control, h("span", {}, label));
const tags = text("tags", { spellcheck: "false", placeholder: "checkout, mobile" });
const owner = text("owner", { maxlength: 100 });

const baseline = decimal("baseline");
const worthwhile = decimal("worthwhile");
const deviation = decimal("deviation");
const perDay = decimal("per-day");
const baselineField = field("Baseline", "/baseline", baseline, "The mean of what is live today.");
const worthwhileField = field("Worth it from", "/worthwhile", worthwhile, "The smallest difference that matters: an experiment among equals can end.");
/** Rates are typed in percent, other rewards as they are. */
const scale = () => (rewardKind.value === "binary" ? 100 : 1);

function nameUnits() {
  const unit = scale() === 100 ? "%" : "";
  baselineField.querySelector("label").textContent = unit ? "Baseline (%)" : "Baseline";
  worthwhileField.querySelector("label").textContent = unit ? "Worth it from (% points)" : "Worth it from (difference)";
  for (const one of [baseline, worthwhile]) shown(one, scale(), unit);
}

rewardKind.addEventListener("change", nameUnits);
nameUnits();
const plan = planner(question);

replace(
  form,
  problems,
  group(
    "What is it?",
    field("Name", "/name", name, "What people call it."),
    field("Key", "/key", key, "What code calls it. Lower-case letters, digits, dots, dashes, underscores; fixed for ever."),
    field("Description", "/description", description),
    h("div", { class: "pair-row" }, field("Tags", "/tags", tags, "Separated by commas."), field("Owner", "/owner", owner, "Whom to ask about it.")),
  ),
  group("Which arms?", h("p", { class: "hint" }, "Two or more variants. The value is handed to your code untouched; a floor is the least share of the traffic."), arms, add, field("Control", "/control", control, "The arm that is live today: the others are compared with it.")),
  group(
    "What is a reward?",
    h("div", { class: "pair-row" }, field("Kind", "/reward", rewardKind), field("Goal", "/reward/goal", goal)),
    onlyWhen(rewardKind, "bounded", h("div", { class: "pair-row" }, field("Smallest", "/reward/min", low), field("Largest", "/reward/max", high))),
    field("When no reward comes", "/expiry", silence),
    onlyWhen(
      silence,
      ["count", "drop"],
      h("div", { class: "pair-row" }, field("After (hours)", "/expiry/after_seconds", after), onlyWhen(silence, "count", field("Count it as", "/expiry/reward", silent))),
    ),
  ),
  group(
    "What to expect?",
    h(
      "div",
      { class: "pair-row" },
      baselineField,
      worthwhileField,
      onlyWhen(rewardKind, ["bounded", "real"], field("Rewards vary by", "/deviation", deviation, "Their standard deviation.")),
      field("Visitors a day", "/per_day", perDay, "To tell how long it takes."),
    ),
    plan.place,
  ),
  group(
    "How is it run?",
    h("div", { class: "pair-row" }, field("Policy", "/policy", policy), field("Confidence (%)", "/confidence", confidence)),
    h(
      "details",
      {},
      h("summary", {}, "Parameters of the policy"),
      h(
        "div",
        { class: "pair-row" },
        onlyWhen(policy, ["simple_tracking", "almost_tracking"], field("Sharpness (1 to 3)", "/policy/sharpness", sharpness, "1: the paper's weights.")),
        onlyWhen(policy, ["simple_tracking", "almost_tracking"], field("Guard (0 to 1)", "/policy/guard", guard, "The part of the paper's weights in the mixture.")),
        onlyWhen(policy, "almost_tracking", field("Batch size", "/policy/batch_size", batch, "Empty: twice the number of arms.")),
        field("Seed", "/policy/seed", seed, "Empty: random."),
      ),
    ),
    check("A visitor keeps their arm (sticky)", sticky),
    h(
      "div",
      { class: "pair-row" },
      field("Conclude by itself", "/conclude_when", byItself),
      onlyWhen(byItself, ["separated", "decided", "beats_control"], field("… and at least this many observations", "/conclude_when/min_observations", least)),
    ),
    field("After creating", "/status", start),
  ),
  h("p", { class: "actions" }, h("a", { class: "button", href: "/" }, "Cancel"), h("button", { class: "button primary", type: "submit" }, "Create experiment")),
);

const HOUR = 3600;

function readReward() {
  const reward = { kind: rewardKind.value, goal: goal.value };
  if (rewardKind.value === "bounded") Object.assign(reward, { min: numeric(low), max: numeric(high) });
  return reward;
}

function readPolicy() {
  const rule = { kind: policy.value, seed: numeric(seed) };
  if (policy.value.endsWith("_tracking")) Object.assign(rule, { sharpness: numeric(sharpness), guard: numeric(guard) });
  if (policy.value === "almost_tracking") rule.batch_size = numeric(batch);
  return rule;
}

function readExpiry() {
  if (silence.value === "wait") return null;
  const hours = numeric(after);
  return { after_seconds: typeof hours === "number" ? hours * HOUR : hours, reward: silence.value === "count" ? numeric(silent) : null };
}

/** What is asked of the planner, or what is still missing for it. */
function question() {
  const [given, lift] = [numeric(baseline, scale()), numeric(worthwhile, scale())];
  const varies = rewardKind.value === "binary" ? undefined : numeric(deviation);
  const missing = [
    typeof given !== "number" && "the baseline",
    typeof lift !== "number" && "what it is worth from",
    rewardKind.value !== "binary" && typeof varies !== "number" && "how much rewards vary",
  ].filter(Boolean);
  if (missing.length) return `Say ${missing.join(" and ")}, and here is how long it will take.`;
  const rows = [...arms.children];
  const controlled = control.value === "" ? -1 : Number(control.value);
  return {
    arms: rows.length,
    // The control is not the arm that is supposed to win.
    best: rows.length - 1 === controlled ? rows.length - 2 : rows.length - 1,
    min_shares: rows.map((row) => numeric(row.querySelector("[name=arm-floor]"), 100) ?? 0),
    baseline: given,
    lift,
    worthwhile: lift,
    deviation: varies,
    reward: readReward(),
    policy: { ...readPolicy(), seed: undefined },
    confidence: numeric(confidence, 100),
    expiry: readExpiry(),
    per_day: numeric(perDay),
  };
}

function read() {
  return {
    key: key.value.trim(),
    name: name.value.trim() || undefined,
    description: description.value,
    arms: [...arms.children].map((row) => {
      const [armKey, armName, value, floor] = row.querySelectorAll("input");
      return { key: armKey.value.trim(), name: armName.value.trim() || undefined, value: json(value), min_share: numeric(floor, 100) ?? 0 };
    }),
    policy: readPolicy(),
    reward: readReward(),
    expiry: readExpiry(),
    sticky: sticky.checked,
    confidence: numeric(confidence, 100),
    conclude_when: byItself.value ? { [byItself.value]: true, min_observations: numeric(least) } : null,
    worthwhile: numeric(worthwhile, scale()),
    control: control.value === "" ? null : arms.children[Number(control.value)].querySelector("input").value.trim(),
    tags: tags.value.split(",").map((tag) => tag.trim()).filter(Boolean),
    owner: owner.value.trim() || null,
    status: start.value,
  };
}

function fail(problem) {
  if (problem.code === "experiment_exists") {
    mark(key, problem.message);
    key.focus();
    return;
  }
  const unplaced = placeErrors(form, inTypedUnits(form, problem));
  problems.textContent = unplaced.join(" ");
  problems.hidden = !unplaced.length;
  if (unplaced.length) problems.scrollIntoView({ block: "center" });
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  clearErrors(form);
  problems.hidden = true;
  const button = form.querySelector("[type=submit]");
  button.disabled = true;
  try {
    const created = await send("POST", "/v1/experiments", read());
    location.assign(`/experiments/${encodeURIComponent(created.key)}`);
  } catch (problem) {
    if (!(problem instanceof Problem)) throw problem;
    fail(problem);
  } finally {
    button.disabled = false;
  }
});

forgetWhenMended(form, problems);
for (const moved of ["input", "change"]) form.addEventListener(moved, plan.changed);

const refusal = notice("Not with this key", "It may not create experiments: that needs the scope “manage”.", h("a", { class: "button", href: "/" }, "All experiments"));
const page = [
  h("nav", { class: "crumbs", "aria-label": "Breadcrumb" }, h("a", { href: "/" }, "Experiments"), h("span", { "aria-hidden": "true" }, "/"), h("span", {}, "New")),
  h("div", { class: "title" }, h("h1", {}, "New experiment")),
  form,
];
replace(main(), may("manage") ? page : refusal);
if (may("manage")) name.focus();
