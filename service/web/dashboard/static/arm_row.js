// One row of the table of arms.

import { h, say } from "./dom.js";
import { editArm, switchArm } from "./actions.js";
import { may } from "./session.js";
import { progressText } from "./verdict.js";
import * as format from "./format.js";

export function armRow(key, state, changed) {
  const cell = (column, label, ...content) => h("td", { role: "cell", "data-column": column, "data-label": label }, content);
  const numeral = () => h("span", { class: "number" });
  const name = h("strong", { class: "arm-name" });
  const tags = h("span", { class: "tags" });
  const [draws, pending, observations, mean, bounds, share, target, lift, ratio, liftBounds, evidence] = Array.from({ length: 11 }, numeral);
  const range = h("span", { class: "range", "aria-hidden": "true" }, h("span", { class: "reach" }), h("span", { class: "point" }));
  const bar = h("span", { class: "share", "aria-hidden": "true" }, h("span", { class: "fill" }), h("span", { class: "mark" }));
  const proof = h("span", { class: "meter", "aria-hidden": "true" }, h("span", { class: "fill" }));
  for (const small of [target, ratio]) small.classList.add("muted");
  for (const below of [bounds, liftBounds]) below.classList.add("below");
  const armOf = () => state().experiment.arms.find((arm) => arm.key === key);
  const edit = h("button", { class: "button small quiet", type: "button", onClick: () => editArm(state().experiment, armOf(), changed) }, "Edit");
  const toggle = h("button", { class: "button small quiet", type: "button", onClick: () => switchArm(state().experiment, armOf(), changed) });
  const element = h(
    "tr",
    { role: "row", "data-arm": key },
    cell("arm", "Arm", h("span", { class: "arm-title" }, name, tags), h("span", { class: "key" }, key)),
    cell("lift", "Lift", h("span", { class: "lift-line" }, lift, " ", ratio), liftBounds),
    cell("mean", "Mean", mean, range, bounds),
    cell("evidence", "Evidence", evidence, proof),
    cell("draws", "Draws", draws),
    cell("observations", "Observed", observations),
    cell("pending", "Pending", pending),
    cell("share", "Share / target", bar, h("span", { class: "pair" }, share, " / ", target)),
    cell("actions", "Actions", h("span", { class: "actions" }, edit, toggle)),
  );
  let tagged = "";

  function show(arm, facts) {
    const { now, write, scale } = facts;
    const label = arm.name || arm.arm;
    say(name, label);
    say(draws, format.count(arm.draws));
    say(pending, format.count(arm.pending));
    say(observations, format.count(arm.observations));
    say(mean, write.amount(arm.mean));
    say(bounds, arm.interval && arm.mean !== null ? write.range(arm.interval) : "");
    say(share, format.percent(arm.share));
    say(target, format.percent(arm.target_share));
    bar.style.setProperty("--part", arm.share);
    bar.style.setProperty("--mark", arm.target_share);
    range.hidden = !scale || arm.mean === null;
    if (!range.hidden) {
      const [low, high] = arm.interval ?? [arm.mean, arm.mean];
      range.style.setProperty("--low", scale(low));
      range.style.setProperty("--high", scale(high));
      range.style.setProperty("--at", scale(arm.mean));
    }
    showLift(arm, facts);
    showEvidence(arm, facts);
    showTags(arm, facts);
    const frozen = now.status === "archived" || !may("manage");
    edit.hidden = frozen;
    toggle.hidden = frozen || arm.arm === now.concluded_arm;
    say(toggle, arm.status === "active" ? "Disable" : "Enable");
    edit.setAttribute("aria-label", `Edit ${label}`);
    toggle.setAttribute("aria-label", `${toggle.textContent} ${label}`);
  }

  /** Against the control; without one, against the leader and without an interval. */
  function showLift(arm, { stand, write, lift: liftOf }) {
    const difference = liftOf(arm);
    const none = stand.control ? (arm === stand.control ? "control" : "–") : arm === stand.leader ? "leader" : "–";
    say(lift, difference === null ? none : write.difference(difference));
    lift.classList.toggle("muted", difference === null);
    const known = stand.control ? arm.lift : null;
    say(ratio, known?.ratio == null ? "" : format.ratio(known.ratio));
    if (known?.ratio_interval) ratio.title = `The ratio lies between ${known.ratio_interval.map((end) => end.toFixed(2)).join(" and ")}.`;
    else ratio.removeAttribute("title");
    say(liftBounds, known?.difference_interval ? write.differences(known.difference_interval) : "");
  }

  function showEvidence(arm, { now }) {
    const part = arm.evidence;
    const shown = part !== null && part >= 1;
    proof.hidden = part === null;
    proof.firstChild.style.setProperty("--part", part ?? 0);
    proof.classList.toggle("shown", shown);
    say(evidence, part === null ? (arm.arm === now.arm ? "leads" : "–") : shown ? "shown" : progressText(part));
    evidence.classList.toggle("muted", part === null);
  }

  function showTags(arm, { now, stand }) {
    const leads = arm.arm === now.arm;
    const concluded = now.concluded_arm !== null;
    const served = arm.arm === now.concluded_arm;
    const labels = [
      arm === stand.control && ["control", "outlined"],
      served && ["served", leads ? "good" : "warn"],
      leads && (concluded ? !served && ["best mean", "good"] : ["leads", "good"]),
      arm.arm === now.runner_up && !concluded && ["runner-up", ""],
      arm.harmful && ["harmful", "bad"],
      arm.status === "disabled" && ["disabled", ""],
      now.drift.includes(arm.arm) && ["drifting", "warn"],
    ].filter(Boolean);
    if (JSON.stringify(labels) !== tagged) tags.replaceChildren(...labels.map(([text, tone]) => h("span", { class: `tag ${tone}` }, text)));
    tagged = JSON.stringify(labels);
    element.classList.toggle("leads", concluded ? served : leads);
    element.classList.toggle("disabled", arm.status === "disabled");
  }
  return { element, show };
}
