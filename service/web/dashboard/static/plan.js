// What to expect of an experiment before it is created: visitors until the verdict, days, the policy, the winner's share.

import { h, replace, say } from "./dom.js";
import { Problem, send } from "./api.js";
import { percent } from "./format.js";

const PAUSE = 400;

/** A place that shows the plan of what `read` returns: a request, or the words that say what is still missing. */
export function planner(read) {
  // The answer alone is read out when it changes; the rest is there to be read.
  const answer = h("p", { role: "status" });
  const details = h("div", { class: "plan-details" });
  const place = h("div", { class: "plan" }, answer, details);
  let timer = null;
  let asked = null;

  function tell(words, kind, ...more) {
    place.removeAttribute("aria-busy");
    answer.className = kind;
    say(answer, words);
    replace(details, ...more);
  }

  async function ask() {
    const wanted = read();
    const body = JSON.stringify(wanted);
    if (body === asked) return;
    asked = body;
    if (typeof wanted === "string") return tell(wanted, "muted");
    place.setAttribute("aria-busy", "true");
    if (answer.className !== "plan-answer") say(answer, "Playing the experiment…");
    try {
      const found = await send("POST", "/dashboard/plan", wanted);
      if (asked === body) tell(found.summary, "plan-answer", ...described(found, wanted));
    } catch (problem) {
      if (!(problem instanceof Problem)) throw problem;
      if (asked !== body) return;
      asked = null;
      tell(problem.status === 422 ? `No plan yet: ${reasons(problem)}` : problem.message, "muted");
    }
  }

  function changed() {
    clearTimeout(timer);
    timer = setTimeout(ask, PAUSE);
  }

  changed();
  return { place, changed };
}

const reasons = (problem) => (problem.fields.length ? problem.fields.map((field) => field.detail).join(" ") : problem.message);

function described(found, wanted) {
  const facts = [
    found.no_difference && ["If no arm is better", found.no_difference.summary],
    found.separated && found.until === "decided" && ["Until the best is separated", found.separated.summary],
    ["Policy", found.policy_summary],
    found.best_arm.share !== null && ["Traffic to the winner", `${percent(found.best_arm.share, 0)} of the visitors until then.`],
    typeof wanted.expiry?.reward === "number" && !found.per_day && ["Silence", "Add the time until silence counts; with the visitors a day it is included."],
  ];
  return [
    h("p", { class: "hint" }, "Until the verdict, if one arm is better by just what it is worth. From simulated experiments; real ones differ."),
    h("dl", { class: "facts" }, facts.filter(Boolean).map(([term, text]) => h("div", {}, h("dt", {}, term), h("dd", {}, text)))),
  ];
}
