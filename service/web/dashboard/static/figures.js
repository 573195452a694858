// The counts beside the verdict, and what stands behind it for those who want to know.

import { h, replace, say } from "./dom.js";
import * as format from "./format.js";

export function figures() {
  const figure = (label, ...content) => h("div", {}, h("dt", {}, label), h("dd", {}, content));
  const [draws, observations, pending, lead, error] = Array.from({ length: 5 }, () => h("span", { class: "number" }));
  const asOf = h("time");
  const assumes = h("ul");
  const assumptions = h("div", { hidden: true }, h("p", {}, "What this assumes:"), assumes);
  const element = h(
    "div",
    { class: "behind" },
    h("dl", { class: "figures" }, figure("Draws", draws), figure("Observed", observations), figure("Pending", pending), figure("As of", asOf)),
    h(
      "details",
      {},
      h("summary", {}, "Details"),
      h("dl", { class: "estimates" }, figure("Estimated chance of error", error), figure("Lead over the runner-up", lead)),
      h("p", {}, "The estimated chance of error is a guess of how likely another arm is better than the leader. It promises nothing; the verdict does."),
      assumptions,
    ),
  );
  element.show = ({ reward }, now) => {
    say(draws, format.count(now.draws));
    say(observations, format.count(now.observations));
    say(pending, format.count(now.pending));
    const write = format.rewards(reward.kind, now.arms.map((arm) => arm.mean));
    say(lead, now.gap === null ? "–" : write.size(now.gap));
    say(error, chance(now.error_estimate));
    say(asOf, `${format.moment(now.as_of)} (${format.zone()})`);
    assumptions.hidden = !now.assumes.length;
    if (assumes.textContent !== now.assumes.join("")) replace(assumes, now.assumes.map((words) => h("li", {}, words)));
  };
  return element;
}

function chance(error) {
  if (error === null) return "too early";
  return error > 0 && error < 0.001 ? "less than 0.1%" : format.percent(error);
}
