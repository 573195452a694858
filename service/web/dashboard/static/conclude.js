// Concluding with open eyes: what is known of the arm that is chosen, and a second question before a loser is served.

import { h, replace } from "./dom.js";
import { forecastWords } from "./answers.js";
import { get, path, send } from "./api.js";
import { confirmed } from "./dialog.js";
import { field } from "./fields.js";
import { whyNot } from "./forecast.js";
import { liftWords, nameOf, standing } from "./standing.js";
import { verdictSign } from "./verdict.js";
import * as format from "./format.js";

export async function conclude(state, changed) {
  const { experiment, recommendation } = state();
  const stand = standing(experiment, recommendation);
  const write = format.rewards(experiment.reward.kind, recommendation.arms.map((arm) => arm.mean));
  const facts = { experiment, recommendation, stand, write, forecast: state().forecast };
  const label = (arm) => [nameOf(arm), arm.mean === null ? "" : write.amount(arm.mean), arm.arm === stand.recommended ? "recommended" : ""].filter(Boolean).join(", ");
  const choice = h(
    "select",
    { name: "arm", required: true },
    stand.leader ? null : h("option", { value: "" }, "Choose an arm"),
    stand.ranked.map((arm) => h("option", { value: arm.arm, selected: arm.arm === (stand.recommended ?? recommendation.arm) }, label(arm))),
  );
  const eyes = h("dl", { class: "facts open-eyes" });
  const sign = verdictSign();
  sign.show(recommendation.verdict);
  const show = () => replace(eyes, rows(stand.arm(choice.value), facts).map(([term, words]) => h("div", {}, h("dt", {}, term), h("dd", {}, words))));
  choice.addEventListener("change", show);
  show();
  if (!facts.forecast && !whyNot(recommendation)) {
    get(path(experiment.key, "forecast")).then(
      (forecast) => {
        facts.forecast = forecast;
        show();
      },
      () => {},
    );
  }
  const done = await confirmed({
    title: `Conclude “${nameOf(experiment)}”?`,
    text: "From now on every visitor gets the arm below and no draws are recorded. Late rewards still count, and you can reopen it.",
    action: "Conclude",
    grave: true,
    wide: true,
    fields: [h("p", { class: "state-of-it" }, sign), field("Arm to serve", "/arm", choice), eyes],
    run: async () => {
      const arm = stand.arm(choice.value);
      if (arm && isLoser(arm, stand) && !(await sureOfLoser(arm, facts))) return false;
      return send("POST", path(experiment.key, "conclude"), { arm: choice.value || undefined });
    },
  });
  if (done) changed();
}

/** Another arm is recommended, or has a better mean. */
function isLoser(arm, stand) {
  if (stand.recommended) return arm.arm !== stand.recommended;
  return stand.leader !== null && arm !== stand.leader && stand.gain(stand.leader, arm) !== 0;
}

function sureOfLoser(arm, { stand, write }) {
  const better = stand.arm(stand.recommended) ?? stand.leader;
  const lost = stand.gain(better, arm);
  const shown = arm.evidence === 1 || stand.recommended ? "It is shown that" : "By the rewards so far";
  const much = lost === null ? "" : ` by ${write.size(lost)}`;
  return confirmed({
    title: `Serve ${nameOf(arm)} although ${nameOf(better)} is better?`,
    text: [`${shown} ${nameOf(better)} is better than ${nameOf(arm)}${lost !== null && lost > 0 ? `; the means differ${much}` : ""}.`, `Every visitor would get ${nameOf(arm)} from now on.`],
    action: `Serve ${nameOf(arm)} all the same`,
    grave: true,
    run: () => true,
  });
}

/** What one should know before this arm is served to everyone. */
function rows(arm, facts) {
  if (!arm) return [["Verdict", "No reward has arrived yet, so nothing is known of any arm."]];
  return [
    ["Verdict", verdictOf(arm, facts)],
    ["Against the control", liftOf(arm, facts)],
    ["If it is wrong", lossOf(arm, facts)],
    ["The others", othersOf(arm, facts)],
    ["If you wait", waitOf(facts)],
  ].filter(([, words]) => words);
}

function verdictOf(arm, { recommendation, stand }) {
  const { verdict, confidence } = recommendation;
  const sure = `at ${format.percent(confidence).replace(".0%", "%")} confidence`;
  if (arm.arm === stand.recommended) {
    if (verdict.reason === "beats_control") return `Decided: better than the control, ${sure}.`;
    return verdict.reason === "separated" ? `Decided: better than every other active arm, ${sure}.` : `Decided: no other arm is better by what is worthwhile, ${sure}.`;
  }
  if (stand.recommended) return `Decided for ${stand.named(stand.recommended)}, and not for this arm.`;
  if (arm.harmful) return "Harmful: shown to be worse than the control.";
  if (arm.evidence === 1) return "Shown to be worse than another arm.";
  if (arm !== stand.leader) return arm.mean === null ? "No reward has arrived for it." : `Not decided. ${nameOf(stand.leader)} has the better mean, so far without proof.`;
  if (!verdict.held_up_by) return "Not decided.";
  return `Not decided. It leads; the evidence against ${stand.named(verdict.held_up_by)} is ${Math.floor(verdict.progress * 100)}% of what it takes.`;
}

function liftOf(arm, { stand, write }) {
  if (!stand.control) return "";
  if (arm === stand.control) return "It is the control: what is live today stays.";
  if (!arm.lift) return "Not known yet.";
  const words = liftWords(arm.lift, write);
  const ratio = words.ratio === null ? "" : `, ${format.ratio(words.ratio)}`;
  return `${words.size} on ${nameOf(stand.control)}${words.interval ? ` (${words.interval})` : ""}${ratio}.`;
}

/** For the leader, what the forecast expects to lose; for another arm, how far it is behind already. */
function lossOf(arm, { stand, write, forecast }) {
  if (arm !== stand.leader) {
    const behind = stand.gain(stand.leader, arm);
    return behind === null ? "" : behind === 0 ? "It is level with the leader." : `About ${write.size(behind)} a visitor, by which ${nameOf(stand.leader)} is ahead.`;
  }
  if (!forecast) return "";
  const lost = forecast.shortfall_now;
  if (lost <= 0) return "Nothing that could be measured.";
  return `${small(lost, write)} a visitor, averaged over what may yet turn out.`;
}

/** A loss with as many digits as it needs to be more than nothing. */
const small = (lost, write) => (/[1-9]/.test(write.size(lost)) ? write.size(lost) : `Less than ${write.size(0).replace(/0(?=\D*$)/, "1")}`);

function othersOf(arm, { stand, write }) {
  const others = stand.ranked.filter((one) => one !== arm && one.mean !== null);
  const words = others.slice(0, 3).map((one) => {
    const gain = stand.gain(one, arm);
    const shown = one.evidence === 1 && arm === stand.leader ? ", shown" : "";
    return `${nameOf(one)} ${gain === 0 ? "level" : `${write.size(gain)} ${gain < 0 ? "behind" : "ahead"}${shown}`}`;
  });
  if (others.length > 3) words.push(`${format.plural(others.length - 3, "other")}`);
  return words.length ? `${words.join("; ")}.` : "";
}

function waitOf({ recommendation, stand, forecast }) {
  if (stand.recommended) return "There is nothing to wait for: the verdict is there.";
  const reason = whyNot(recommendation);
  if (reason) return reason;
  if (!forecast) return "The forecast is being made.";
  const [short, long] = forecastWords(forecast, recommendation.status);
  return `The verdict: ${short[0].toLowerCase() + short.slice(1)}. ${long}`;
}
