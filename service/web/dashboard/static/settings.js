// The settings, as sentences.

import { h, replace } from "./dom.js";
import { editSettings } from "./actions.js";
import * as format from "./format.js";

const POLICIES = { simple_tracking: "Simple Tracking", almost_tracking: "Almost Tracking", uniform: "Uniform" };

export function settings(state, changed) {
  const list = h("dl", { class: "facts" });
  const edit = h("button", { class: "button small", type: "button", onClick: () => editSettings(state().experiment, changed) }, "Edit settings");
  const element = h(
    "section",
    { "aria-labelledby": "settings-title" },
    h("div", { class: "section-title" }, h("h2", { id: "settings-title" }, "Settings"), edit),
    h("div", { class: "card" }, list),
  );
  return {
    element,
    show({ experiment, recommendation }) {
      edit.hidden = experiment.status === "archived";
      replace(list, rowsOf(experiment, recommendation).map(([term, words]) => h("div", {}, h("dt", {}, term), h("dd", {}, words))));
    },
  };
}

function rowsOf(experiment, recommendation) {
  const { policy, reward, expiry, conclude_when: rule } = experiment;
  const parameters = Object.entries(policy).filter(([name, value]) => name !== "kind" && value !== null);
  return [
    ["Policy", POLICIES[policy.kind] ?? policy.kind],
    ["Parameters", parameters.map(([name, value]) => `${name.replaceAll("_", " ")} ${value}`).join(", ") || "none"],
    ["Reward", `${reward.kind}${reward.kind === "bounded" ? `, ${format.number(reward.min)} to ${format.number(reward.max)}` : ""}, ${reward.goal === "maximize" ? "more is better" : "less is better"}`],
    ["Silence", silence(expiry)],
    ["Visitors", experiment.sticky ? "keep their arm" : "get an arm at every ask"],
    ["Confidence", format.percent(experiment.confidence, 1).replace(".0%", "%")],
    ["Intervals", recommendation.method],
    ["Concludes by itself", rule ? `when ${rule.decided ? "decided" : "separated"}, after ${format.plural(rule.min_observations, "observation")}` : "no"],
    ...(experiment.worthwhile === null ? [] : [["Worthwhile", `a difference of ${format.number(experiment.worthwhile)}`]]),
    ["Created", format.moment(experiment.created_at)],
  ];
}

function silence(expiry) {
  if (!expiry) return "draws wait for their reward for ever";
  const then = expiry.reward === null ? "is dropped" : `counts as ${format.number(expiry.reward)}`;
  return `after ${format.span(expiry.after_seconds)} a silent draw ${then}`;
}
