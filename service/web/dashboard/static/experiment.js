// One experiment, live.

import { h, main, notice, replace, say } from "./dom.js";
import { asker, get, path } from "./api.js";
import { follow, showConnection } from "./live.js";
import { lifecycle } from "./actions.js";
import { armsTable } from "./arms.js";
import { auditLog } from "./audit.js";
import { charts } from "./charts.js";
import { certaintyMeter, setStatus, status } from "./parts.js";
import { settings } from "./settings.js";
import * as format from "./format.js";

const key = decodeURIComponent(location.pathname.split("/").at(-1));
const REFRESH_MS = 10000;
const now = { experiment: null, recommendation: null };
const state = () => now;
const askAgain = asker(() => path(key, "recommendation"));

/** Settings, arms and the log change rarely: they are read again when the stream shows that they may have. */
let described = "";
let describedAt = 0;
const shapeOf = (recommendation) =>
  JSON.stringify([recommendation.status, recommendation.concluded_arm, recommendation.confidence, recommendation.arms.map((arm) => [arm.arm, arm.name, arm.status])]);

async function describe() {
  const [experiment] = await Promise.all([get(path(key)), view?.log.load()]);
  now.experiment = experiment;
  describedAt = Date.now();
  if (view && now.recommendation) showSettings();
}

async function take(recommendation) {
  if (now.recommendation && recommendation.version < now.recommendation.version) return;
  const changed = recommendation.version !== now.recommendation?.version;
  now.recommendation = recommendation;
  const shape = shapeOf(recommendation);
  if (shape !== described || (changed && Date.now() - describedAt > REFRESH_MS)) {
    described = shape;
    try {
      await describe();
    } catch {
      described = "";
      if (!now.experiment) return;
    }
  }
  show();
}

/** After a change of our own: look at once instead of waiting for the stream. */
async function changed() {
  const recommendation = await get(path(key, "recommendation"));
  described = "";
  await take(recommendation);
}

let view = null;

function build() {
  const name = h("h1", { tabindex: "-1" });
  const pill = status(now.recommendation.status);
  const description = h("p", { class: "description" });
  const headline = h("p", { class: "headline" }, h("span"), h("span", { class: "rest" }));
  const meter = certaintyMeter();
  const figure = (label, ...content) => h("div", {}, h("dt", {}, label), h("dd", {}, content));
  const [draws, observations, pending, gap] = Array.from({ length: 4 }, () => h("span", { class: "number" }));
  const asOf = h("time", { class: "muted" });
  const drift = h("p", { class: "notice warn", hidden: true });
  const assumptions = h("details", { class: "assumes", hidden: true }, h("summary", {}, "What this assumes"), h("ul"));
  const steps = lifecycle(state, changed);
  const arms = armsTable(state, changed);
  const pictures = charts(key);
  const log = auditLog(key);
  const facts = settings(state, changed);
  replace(
    main(),
    h("nav", { class: "crumbs", "aria-label": "Breadcrumb" }, h("a", { href: "/" }, "Experiments"), h("span", { "aria-hidden": "true" }, "/"), h("span", { class: "key" }, key)),
    h("div", { class: "title" }, h("div", { class: "named" }, name, pill), steps),
    description,
    h(
      "section",
      { class: "card verdict", "aria-label": "Verdict" },
      h("div", { class: "words" }, headline, drift, assumptions),
      h(
        "dl",
        { class: "figures" },
        figure("Certainty (estimate)", meter),
        figure("Lead", gap),
        figure("Draws", draws),
        figure("Observed", observations),
        figure("Pending", pending),
        figure("As of", asOf),
      ),
    ),
    arms.element,
    h("section", { class: "charts", "aria-label": "Charts over time" }, pictures.traffic, pictures.certainty),
    h("div", { class: "charts" }, h("div", { class: "stack" }, pictures.means, log.element), h("div", { class: "stack" }, facts.element)),
  );
  return { name, pill, description, headline, meter, draws, observations, pending, gap, asOf, drift, assumptions, steps, arms, pictures, log, facts };
}

function show() {
  const { recommendation } = now;
  if (!view) {
    view = build();
    showSettings();
    view.log.load().catch(() => {});
  }
  setStatus(view.pill, recommendation.status);
  view.steps.show(recommendation.status);
  const end = endOfVerdict(recommendation.summary);
  say(view.headline.firstChild, recommendation.summary.slice(0, end));
  say(view.headline.lastChild, recommendation.summary.slice(end));
  view.meter.show(recommendation);
  say(view.gap, recommendation.gap === null ? "–" : lead(recommendation.gap));
  say(view.draws, format.count(recommendation.draws));
  say(view.observations, format.count(recommendation.observations));
  say(view.pending, format.count(recommendation.pending));
  say(view.asOf, format.moment(recommendation.as_of));
  view.drift.hidden = !recommendation.drift.length;
  say(view.drift, `The rewards of ${recommendation.drift.join(", ")} seem to change over time: the figures may mix different times.`);
  view.assumptions.hidden = !recommendation.assumes.length;
  const list = view.assumptions.querySelector("ul");
  if (list.textContent !== recommendation.assumes.join("")) replace(list, recommendation.assumes.map((words) => h("li", {}, words)));
  view.arms.show(recommendation);
  view.pictures.show(recommendation.version);
}

/** The sentence begins with the verdict and goes on with what qualifies it: large first, then smaller. */
function endOfVerdict(sentence) {
  const ends = [", but ", "; ", " ("].map((mark) => sentence.indexOf(mark, 12)).filter((place) => place > 0);
  const end = Math.min(sentence.length, ...ends);
  return /[,;]/.test(sentence[end] ?? "") ? end + 1 : end;
}

const lead = (gap) => (now.experiment.reward.kind === "binary" ? `${(gap * 100).toFixed(1)} points` : format.number(gap));

function showSettings() {
  const { experiment } = now;
  const title = experiment.name || experiment.key;
  say(view.name, title);
  document.title = `${title} · bestarm`;
  say(view.description, experiment.description);
  view.description.hidden = !experiment.description;
  view.facts.show(now);
}

async function begin() {
  try {
    await describe();
  } catch (problem) {
    if (problem.status === 404) {
      replace(main(), notice("No such experiment", `There is no experiment with the key “${key}”.`, h("a", { class: "button primary", href: "/" }, "All experiments")));
    } else {
      showConnection("lost");
      if (!main().querySelector(".empty")) replace(main(), notice("The service does not answer", "This page comes back by itself as soon as it does."));
      setTimeout(begin, 1500);
    }
    return;
  }
  follow(path(key, "stream"), take, async () => {
    const news = await askAgain();
    if (news) await take(news);
  });
}

begin();
