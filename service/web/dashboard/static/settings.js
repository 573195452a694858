// The settings, as sentences, and what can be done with an experiment as a whole.

import { h, replace } from "./dom.js";
import { duplicate, remove } from "./actions.js";
import { rule } from "./audit_words.js";
import { may } from "./session.js";
import { editSettings } from "./settings_form.js";
import { nameOf } from "./standing.js";
import * as format from "./format.js";

const POLICIES = { simple_tracking: "Simple Tracking", almost_tracking: "Almost Tracking", uniform: "Uniform" };

export function settings(state, changed) {
  const list = h("dl", { class: "facts" });
  const edit = h("button", { class: "button small", type: "button", onClick: () => editSettings(state().experiment, changed) }, "Edit settings");
  const copy = h("button", { class: "button small", type: "button", onClick: () => duplicate(state().experiment) }, "Duplicate");
  const drop = h("button", { class: "button small", type: "button", onClick: () => remove(state().experiment) }, "Delete");
  const element = h(
    "section",
    { "aria-labelledby": "settings-title" },
    h("div", { class: "section-title" }, h("h2", { id: "settings-title" }, "Settings"), h("div", { class: "actions" }, drop, copy, edit)),
    h("div", { class: "card" }, list),
  );
  return {
    element,
    show({ experiment, recommendation }) {
      edit.hidden = experiment.status === "archived" || !may("manage");
      copy.hidden = !may("manage");
      drop.hidden = !["draft", "archived"].includes(experiment.status) || !may("admin");
      replace(list, rowsOf(experiment, recommendation).map(([term, words]) => h("div", {}, h("dt", {}, term), h("dd", {}, words))));
    },
  };
}

function rowsOf(experiment, recommendation) {
  const { policy, reward, expiry, conclude_when: when, control, worthwhile } = experiment;
  const parameters = Object.entries(policy).filter(([name, value]) => name !== "kind" && value !== null);
  const arm = experiment.arms.find((one) => one.key === control);
  return [
    ["Control", arm ? `${nameOf(arm)}, live today` : "none"],
    ["Worthwhile", worthwhile === null ? "any difference" : `a difference of ${reward.kind === "binary" ? `${format.number(worthwhile * 100)} points` : format.number(worthwhile)}`],
    ["Confidence", format.percent(experiment.confidence, 1).replace(".0%", "%")],
    ["Concludes by itself", when ? rule(when) : "no"],
    ["Reward", `${reward.kind}${reward.kind === "bounded" ? `, ${format.number(reward.min)} to ${format.number(reward.max)}` : ""}, ${reward.goal === "maximize" ? "more is better" : "less is better"}`],
    ["Silence", silence(expiry)],
    ["Visitors", experiment.sticky ? "keep their arm" : "get an arm at every ask"],
    ["Policy", POLICIES[policy.kind] ?? policy.kind],
    ["Parameters", parameters.map(([name, value]) => `${name.replaceAll("_", " ")} ${value}`).join(", ") || "none"],
    ["Intervals", recommendation.method],
    ["Owner", experiment.owner ?? "nobody named"],
    ["Tags", experiment.tags.length ? experiment.tags.map((tag) => h("span", { class: "tag" }, tag)) : "none"],
    ["Created", format.moment(experiment.created_at)],
  ];
}

function silence(expiry) {
  if (!expiry) return "draws wait for their reward for ever";
  const then = expiry.reward === null ? "is dropped" : `counts as ${format.number(expiry.reward)}`;
  return `after ${format.span(expiry.after_seconds)} a silent draw ${then}`;
}
