// The five questions that a page is opened with, and their answers: may I stop, which arm, when, at what cost, who changed it last.

import { doer } from "./audit_words.js";
import { h, say } from "./dom.js";
import { whyNot } from "./forecast.js";
import { liftWords, standing } from "./standing.js";
import * as format from "./format.js";

const QUESTIONS = {
  stop: "May I stop?",
  arm: "Which arm, by how much?",
  when: "When will I know?",
  cost: "What does waiting cost?",
  change: "Who changed what last?",
};

/** `show(state)` with the experiment, the recommendation, the forecast and the log's last change by people. */
export function answers() {
  const places = Object.fromEntries(
    Object.keys(QUESTIONS).map((name) => [name, { short: h("span", { class: "answer" }), long: h("span", { class: "why" }) }]),
  );
  const element = h(
    "dl",
    { class: "answers" },
    Object.entries(QUESTIONS).map(([name, question]) => {
      const { short, long } = places[name];
      return h("div", { "data-answer": name }, h("dt", {}, question), h("dd", {}, short, " ", long));
    }),
  );
  element.show = (state) => {
    const facts = { ...state, stand: standing(state.experiment, state.recommendation), write: writerOf(state) };
    const found = { stop: mayStop(facts), arm: whichArm(facts), when: whenKnown(facts), cost: costOfWaiting(facts), change: lastChange(facts) };
    for (const [name, [short, long]] of Object.entries(found)) {
      say(places[name].short, short);
      say(places[name].long, long);
    }
  };
  return element;
}

const writerOf = ({ experiment, recommendation }) =>
  format.rewards(
    experiment.reward.kind,
    recommendation.arms.map((arm) => arm.mean),
  );

function mayStop({ recommendation, experiment, stand, conclusion }) {
  const { verdict, confidence } = recommendation;
  const sure = `at ${format.percent(confidence).replace(".0%", "%")} confidence`;
  const taken = stand.named(verdict.arm);
  if (verdict.state === "concluded") return [`Stopped${conclusion ? ` ${format.about(conclusion.at)}` : ""}`, whoConcluded(conclusion, taken)];
  if (recommendation.status === "draft") return ["Not started", "Nobody gets an arm before it is started."];
  if (verdict.state === "decided") {
    const why = {
      separated: `${taken} is better than every other active arm, ${sure}.`,
      nothing_worthwhile: `No other active arm is better than ${taken} by what is worthwhile, ${sure}.`,
      beats_control: `${taken} is better than ${stand.named(experiment.control)}, the control, ${sure}.`,
    };
    return [`Yes, with ${taken}`, why[verdict.reason]];
  }
  const paused = recommendation.status === "paused" ? "It is paused." : "";
  if (verdict.state === "collecting") return ["Not yet", `There is too little to say anything. ${paused}`.trim()];
  const held = `The evidence against ${stand.named(verdict.held_up_by)} is ${Math.floor(verdict.progress * 100)}% of what it takes.`;
  return ["Not yet", `${verdict.held_up_by ? held : ""} ${paused}`.trim()];
}

function whoConcluded(conclusion, name) {
  if (!conclusion) return `Everyone gets ${name}.`;
  return `${format.capital(doer(conclusion))}. Everyone gets ${name}.`;
}

/** Against the control where there is one, else against the runner-up. */
function whichArm({ recommendation, stand, write }) {
  const { verdict } = recommendation;
  if (verdict.state === "concluded") return servedArm(stand, stand.arm(verdict.arm), write);
  const arm = stand.arm(verdict.arm) ?? stand.leader;
  if (!arm) return ["None yet", "No reward has arrived."];
  const name = stand.named(arm.arm);
  const { control } = stand;
  const less = stand.sign < 0 ? " Less is better." : "";
  if (control && arm === control) {
    const next = stand.ranked.find((one) => one !== control && one.mean !== null);
    return [`${name}, as today`, next ? `The control has the best mean; ${stand.named(next.arm)} is ${write.size(stand.gain(next, arm))} behind.` : "It is the control."];
  }
  if (control && arm.lift) {
    const words = liftWords(arm.lift, write);
    const range = words.interval ? `${words.interval}${words.ratio === null ? "" : `, or ${format.ratio(words.ratio)}`}` : "";
    return [`${name}, ${words.size}`, `on ${stand.named(control.arm)}, the control${range ? `: ${range}` : ""}.${less}`];
  }
  const rival = stand.runnerUp && stand.runnerUp !== arm ? stand.runnerUp : stand.ranked.find((one) => one !== arm && one.mean !== null);
  const gain = rival ? stand.gain(arm, rival) : null;
  if (gain === null) return [name, "There is no other arm to compare it with yet."];
  const by = write.difference(arm.mean - rival.mean);
  return [`${name}, ${by}`, `on ${stand.named(rival.arm)}, the next best.${less}${control ? "" : " No control is named."}`];
}

function servedArm(stand, served, write) {
  const best = stand.leader;
  if (!served) return ["–", ""];
  const name = stand.named(served.arm);
  if (!best || best === served || served.mean === null) return [`${name} is served`, best === served ? againstControl(stand, served, write) : ""];
  return [`${name} is served`, `Its mean is ${write.size(stand.gain(served, best))} worse than that of ${stand.named(best.arm)}, the best.`];
}

function againstControl(stand, served, write) {
  const { control } = stand;
  const onControl = control && control !== served && served.lift ? `, ${write.difference(served.lift.difference)} on ${stand.named(control.arm)}` : "";
  return `It has the best mean${onControl}.`;
}

function whenKnown({ recommendation, forecast }) {
  const { verdict, status } = recommendation;
  if (verdict.state === "concluded") return ["It is over", "No more is learned but by late rewards."];
  if (verdict.state === "decided") return verdict.since ? ["It is known", `Since ${format.moment(verdict.since)}.`] : ["It is known", "Just now."];
  if (status === "draft") return ["Not started", "It begins with the first reward."];
  const reason = whyNot(recommendation);
  if (reason) return [verdict.state === "collecting" ? "Too early to say" : "No forecast", reason];
  if (!forecast) return ["…", "The forecast is being made."];
  return forecastWords(forecast, status);
}

/** When, and in how many draws, with the range that four of five futures lie in. */
export function forecastWords(forecast, status) {
  const { draws, at, rate_per_day: rate } = forecast;
  if (forecast.never) {
    const most = draws.median === null ? "far more draws than there are" : `about ${format.roughly(draws.median)} more draws`;
    const least = draws.low === null ? "" : ` (at best ${format.roughly(draws.low)})`;
    return ["Probably never", `Hardly anything sets the best arms apart: it would take ${most}${least}.`];
  }
  if (draws.median === null) {
    const least = draws.low === null ? "" : `; at best it comes in about ${format.roughly(draws.low)} draws`;
    return ["Not in sight", `In most futures there is no verdict within a thousand times the rewards so far${least}.`];
  }
  const range = `${format.roughly(draws.low)} to ${draws.high === null ? "far more" : format.roughly(draws.high)}`;
  const needed = format.roughly(draws.median);
  if (at?.median && new Date(at.median) > Date.now()) {
    return [`About ${format.about(at.median)}`, `In about ${needed} more draws (${range}), at ${format.roughly(rate)} a day.`];
  }
  return [`In about ${needed} draws`, `${format.capital(range)} are likely. ${status === "paused" ? "It is paused: no traffic comes." : ""}`.trim()];
}

/** What goes to arms that are shown to be worse. The forecast tells it with its price; the share alone needs no forecast. */
function costOfWaiting({ recommendation, experiment, forecast, stand, write }) {
  const { status, verdict } = recommendation;
  if (verdict.state === "concluded") {
    const lost = stand.leader && stand.gain(stand.arm(verdict.arm), stand.leader);
    return lost ? [`${write.size(lost)} a visitor`, `Everyone gets ${stand.named(verdict.arm)}, and not the best.`] : ["Nothing", "Nobody waits."];
  }
  if (status !== "running") return ["Nothing", "No traffic comes."];
  if (stand.leader === null) return ["Nothing known", "No arm is shown to be worse than another."];
  const wasted = stand.shownWorse.reduce((sum, arm) => sum + arm.target_share, 0);
  const { share, reward_per_day: lost } = forecast?.waiting ?? { share: wasted, reward_per_day: null };
  if (share < 0.0005) return ["Nothing", stand.shownWorse.length ? "Arms shown to be worse get no traffic." : "No arm is shown to be worse than another."];
  const price = lost ? ` That is ${perDay(Math.abs(lost), experiment)} a day.` : "";
  return [`${format.percent(share)} of the traffic`, `It goes to arms that are shown to be worse.${price}`];
}

const perDay = (lost, { reward }) => {
  const much = format.number(lost < 10 ? +lost.toPrecision(2) : Math.round(lost));
  if (reward.goal === "minimize") return `${much} too much`;
  return reward.kind === "binary" ? `about ${much} ${much === "1" ? "reward" : "rewards"} less` : `${much} less`;
};

function lastChange({ change }) {
  if (change === undefined) return ["…", ""];
  if (change === null) return ["Nothing", ""];
  return [change.words, `${format.capital(format.since(change.at))}, ${change.by}.`];
}

/** Where the first sentence ends; a dot inside a name of an arm ends none. */
export function firstSentence(text, names) {
  let hidden = text;
  for (const name of names.filter((one) => /[.;!?]/.test(one))) hidden = hidden.replaceAll(name, "x".repeat(name.length));
  const end = hidden.search(/[.;!?] (?=\S)/);
  if (end < 0) return [text, ""];
  return [`${text.slice(0, end)}${text[end] === ";" ? "." : text[end]}`, format.capital(text.slice(end + 2))];
}
