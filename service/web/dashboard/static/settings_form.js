// The question that changes the settings: all that may be changed, and only what was changed is sent.

import { h } from "./dom.js";
import { path, send } from "./api.js";
import { confirmed } from "./dialog.js";
import { field, numeric } from "./fields.js";
import { shown } from "./form_errors.js";
import { nameOf } from "./standing.js";

const UNITS = [["seconds", 1], ["minutes", 60], ["hours", 3600], ["days", 86400]];
const POLICIES = [["simple_tracking", "Simple Tracking: adapts with every draw"], ["almost_tracking", "Almost Tracking: adapts in batches"], ["uniform", "Uniform: equal shares"]];
const KINDS = [["binary", "Yes or no (0 or 1)"], ["bounded", "A number between two bounds"], ["real", "Any number"]];
const GOALS = [["maximize", "More is better"], ["minimize", "Less is better"]];
const RULES = [["", "No, only by hand"], ["separated", "Once an arm is better than all others"], ["decided", "Once nothing worthwhile is open"], ["beats_control", "Once an arm beats the control"]];
const SILENCES = [["wait", "Wait for the reward for ever"], ["count", "Count silence as a reward"], ["drop", "Drop silent draws"]];

const text = (name, value, more = {}) => h("input", { name, value: value ?? "", autocomplete: "off", ...more });
const written = (value, scale) => (value === null || value === undefined ? "" : String(scale === 1 ? value : +(value * scale).toPrecision(15)));
const decimal = (name, value, scale = 1) => text(name, written(value, scale), { inputmode: "decimal" });
const choice = (name, options, chosen) => h("select", { name }, options.map(([value, label]) => h("option", { value, selected: value === chosen }, label)));
const check = (label, control) => h("label", { class: "check" }, control, h("span", {}, label));
const pair = (...fields) => h("div", { class: "pair-row" }, fields);

/** Shows a part only while it means something. */
function onlyWhen(control, values, part) {
  const update = () => (part.hidden = !values.includes(control.value));
  control.addEventListener("change", update);
  update();
  return part;
}

export async function editSettings(experiment, changed) {
  const parts = [naming(experiment), deciding(experiment), silence(experiment), ...(experiment.status === "draft" ? [running(experiment)] : [])];
  const done = await confirmed({
    title: `Change the settings of “${nameOf(experiment)}”?`,
    text: "What you change holds from now on. Another confidence, control or worthwhile difference is judged anew from all the data.",
    action: "Save settings",
    wide: true,
    fields: parts.flatMap((part) => part.fields),
    run: () => {
      const wanted = Object.assign({}, ...parts.map((part) => part.read()));
      const news = Object.entries(wanted).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(experiment[name]));
      return news.length ? send("PATCH", path(experiment.key), Object.fromEntries(news)) : null;
    },
  });
  if (done) changed();
}

function naming(experiment) {
  const name = text("name", experiment.name, { maxlength: 255 });
  const description = h("textarea", { name: "description", rows: 3, maxlength: 10000 });
  description.value = experiment.description;
  const owner = text("owner", experiment.owner, { maxlength: 100 });
  const tags = text("tags", experiment.tags.join(", "), { spellcheck: "false" });
  return {
    fields: [
      field("Name", "/name", name),
      field("Description", "/description", description),
      pair(field("Owner", "/owner", owner, "Who to ask about it."), field("Tags", "/tags", tags, "With commas between them.")),
    ],
    read: () => ({
      name: name.value,
      description: description.value,
      owner: owner.value.trim() || null,
      tags: tags.value.split(",").map((tag) => tag.trim()).filter(Boolean),
    }),
  };
}

function deciding(experiment) {
  const rate = experiment.reward.kind === "binary";
  const scale = rate ? 100 : 1;
  const arms = experiment.arms.map((arm) => [arm.key, arm.name && arm.name !== arm.key ? `${arm.name} (${arm.key})` : arm.key]);
  const control = choice("control", [["", "None"], ...arms], experiment.control ?? "");
  const worthwhile = shown(decimal("worthwhile", experiment.worthwhile, scale), scale, " points");
  const confidence = shown(decimal("confidence", experiment.confidence, 100), 100, "%");
  const when = experiment.conclude_when;
  const chosen = ["beats_control", "decided", "separated"].find((name) => when?.[name]) ?? (when ? "separated" : "");
  const rule = choice("rule", RULES, chosen);
  const least = text("least", when?.min_observations ?? 0, { inputmode: "numeric" });
  return {
    fields: [
      pair(
        field("Control", "/control", control, "The arm that is live today."),
        field(rate ? "Worth it from (percentage points)" : "Worth it from", "/worthwhile", worthwhile, "The smallest difference that matters. Empty: any."),
      ),
      pair(field("Confidence (%)", "/confidence", confidence), field("Conclude by itself?", "/conclude_when", rule)),
      onlyWhen(rule, ["separated", "decided", "beats_control"], field("After at least so many observations", "/conclude_when/min_observations", least)),
    ],
    read: () => ({
      control: control.value || null,
      worthwhile: numeric(worthwhile, scale) ?? null,
      confidence: numeric(confidence, 100),
      conclude_when: rule.value ? ruleOf(rule.value, numeric(least) ?? 0, when) : null,
    }),
  };
}

/** As the API shows a rule, so that an unchanged one is seen to be. */
function ruleOf(name, least, before) {
  const same = before && (before[name] || (name === "separated" && !before.decided && !before.beats_control)) && before.min_observations === least;
  return same ? before : { [name]: true, min_observations: least };
}

function silence({ expiry }) {
  const [unit, size] = [...UNITS].reverse().find(([, seconds]) => expiry && Number.isInteger(expiry.after_seconds / seconds)) ?? (expiry ? UNITS[0] : UNITS[2]);
  const kind = choice("silence", SILENCES, !expiry ? "wait" : expiry.reward === null ? "drop" : "count");
  const after = decimal("after", expiry ? expiry.after_seconds / size : 24);
  const units = choice("after-unit", UNITS.map(([word]) => [word, word]), unit);
  const reward = decimal("silent", expiry?.reward ?? 0);
  const unitField = field("Unit", "/expiry/unit", units);
  return {
    fields: [
      field("When no reward comes", "/expiry", kind, "A change holds for later draws."),
      onlyWhen(kind, ["count", "drop"], h("div", { class: "pair-row" }, field("After", "/expiry/after_seconds", after), unitField)),
      onlyWhen(kind, ["count"], field("Count it as", "/expiry/reward", reward)),
    ],
    read: () => {
      if (kind.value === "wait") return { expiry: null };
      const seconds = UNITS.find(([word]) => word === units.value)[1];
      const typed = numeric(after);
      shown(after, 1 / seconds, ` ${units.value}`);
      return { expiry: { after_seconds: typeof typed === "number" ? typed * seconds : (typed ?? null), reward: kind.value === "count" ? (numeric(reward) ?? 0) : null } };
    },
  };
}

/** What is fixed once it runs. */
function running(experiment) {
  const { policy, reward } = experiment;
  const kind = choice("policy", POLICIES, policy.kind);
  const sharpness = decimal("sharpness", policy.sharpness ?? 1);
  const guard = decimal("guard", policy.guard ?? 0);
  const batch = decimal("batch", policy.batch_size);
  const sufficiency = decimal("sufficiency", policy.sufficiency ?? 0.999);
  const seed = decimal("seed", policy.seed);
  const rewardKind = choice("reward-kind", KINDS, reward.kind);
  const goal = choice("goal", GOALS, reward.goal);
  const [low, high] = [decimal("min", reward.min), decimal("max", reward.max)];
  const sticky = h("input", { type: "checkbox", name: "sticky", checked: experiment.sticky });
  const tracking = ["simple_tracking", "almost_tracking"];
  return {
    fields: [
      h("h3", {}, "While it is a draft"),
      pair(field("Reward", "/reward", rewardKind), field("Goal", "/reward/goal", goal)),
      onlyWhen(rewardKind, ["bounded"], pair(field("Smallest", "/reward/min", low), field("Largest", "/reward/max", high))),
      pair(field("Policy", "/policy", kind), field("Seed", "/policy/seed", seed)),
      onlyWhen(kind, tracking, pair(field("Sharpness (1 to 3)", "/policy/sharpness", sharpness), field("Guard (0 to 1)", "/policy/guard", guard))),
      onlyWhen(kind, ["almost_tracking"], pair(field("Batch size", "/policy/batch_size", batch, "Empty: twice the number of arms."), field("Sufficiency (0 to 1)", "/policy/sufficiency", sufficiency))),
      check("A visitor keeps their arm (sticky)", sticky),
    ],
    read: () => {
      const chosen = { kind: kind.value, seed: numeric(seed) ?? policy.seed };
      if (tracking.includes(kind.value)) Object.assign(chosen, { sharpness: numeric(sharpness) ?? 1, guard: numeric(guard) ?? 0, ties: policy.ties ?? "limit" });
      if (kind.value === "almost_tracking") {
        Object.assign(chosen, { batch_size: numeric(batch) ?? null, sufficiency: numeric(sufficiency) ?? 0.999, sufficiency_by: policy.sufficiency_by ?? "planned" });
      }
      const bounds = rewardKind.value === "bounded" ? { min: numeric(low), max: numeric(high) } : {};
      return { policy: chosen, reward: { kind: rewardKind.value, goal: goal.value, ...bounds }, sticky: sticky.checked };
    },
  };
}
