// What the table of arms would leave a reader to wonder about, said beside it.

import { h, replace } from "./dom.js";
import { overlap } from "./standing.js";
import * as format from "./format.js";

const FAR_FROM_TARGET = 0.02;

/** Sentences below the table; hidden while there is nothing to explain. */
export function armNotes() {
  const element = h("ul", { class: "notes", hidden: true });
  let said = "";
  element.show = (experiment, facts) => {
    const words = [overlapping(facts), drifting(experiment, facts), binding(experiment, facts)].filter(Boolean);
    element.hidden = !words.length;
    if (words.join() !== said) replace(element, words.map((one) => h("li", {}, one)));
    said = words.join();
  };
  return element;
}

/** It is shown that the leader is better, and the intervals overlap: both are right. Evidence is told against the leader. */
function overlapping({ stand }) {
  const { leader } = stand;
  const rivals = stand.ranked.filter((arm) => arm !== leader && arm.evidence === 1 && overlap(arm, leader)).map((arm) => stand.named(arm.arm));
  if (!leader || !rivals.length) return "";
  const best = stand.named(leader.arm);
  return `The intervals of ${format.names([...rivals, best], 4)} overlap, and ${best} is shown to be better all the same: one test of the pair is sharper than a comparison of two intervals.`;
}

/** Almost Tracking plans batches, so shares run behind and beside the targets. */
function drifting({ policy }, { now }) {
  const far = now.arms.some((arm) => arm.status === "active" && Math.abs(arm.share - arm.target_share) > FAR_FROM_TARGET);
  if (!far || !now.draws || policy.kind === "uniform") return "";
  if (policy.kind === "almost_tracking") {
    return "Share and target differ because Almost Tracking plans whole batches, each arm in a batch getting one draw at least, and because a share counts all draws so far while the target is what is wanted now.";
  }
  return "Share and target differ because a share counts all draws so far, and the target is what is wanted now.";
}

/** A floor is worth a word where it holds an arm's traffic up. */
function binding({ arms }, { now, stand }) {
  const floors = new Map(arms.map((arm) => [arm.key, arm.min_share]));
  const held = now.arms.filter((arm) => {
    const floor = floors.get(arm.arm) ?? 0;
    return arm.status === "active" && floor > 0 && arm.target_share <= floor * 1.1 + 0.001;
  });
  if (!held.length || now.status === "draft") return "";
  return `The floor holds up the traffic of ${format.names(held.map((arm) => stand.named(arm.arm)))}.`;
}
