// Code to paste: an ask and a tell of this experiment, in three languages.

import { h, replace, say } from "./dom.js";
import { copier } from "./copying.js";
import { shown } from "./dialog.js";
import { isOpen } from "./session.js";

const REWARDS = { binary: () => "1", bounded: (reward) => String(reward.max), real: () => "12.5" };

/** The snippets of an experiment at an address, by language; with keys in use, with a key from the environment. */
export function snippetsOf(experiment, origin, keyed = false) {
  const json = `${keyed ? '-H "Authorization: Bearer $BESTARM_KEY" ' : ""}-H 'Content-Type: application/json'`;
  const base = `${origin}/v1/experiments/${experiment.key}`;
  const reward = REWARDS[experiment.reward.kind](experiment.reward);
  const tell = experiment.sticky ? "by the unit, which keeps its arm" : "by the id of the assignment";
  return {
    curl: (experiment.sticky
      ? [
          `curl -s -X POST ${base}/assignments \\`,
          `  ${json} -d '{"unit": "user-42"}'`,
          `curl -s -X POST ${base}/rewards \\`,
        ]
      : [
          `id=$(curl -s -X POST ${base}/assignments \\`,
          `  ${json} -d '{}' | grep -o 'asg_[0-9a-f]*' | head -1)`,
          `curl -s -X POST ${base}/assignments/$id/reward \\`,
        ]
    )
      .concat(`  ${json} -d '${experiment.sticky ? `{"rewards": [{"unit": "user-42", "reward": ${reward}}]}` : `{"reward": ${reward}}`}'`)
      .join("\n"),
    Python: [
      ...(keyed ? ["import os", ""] : []),
      "import httpx",
      "",
      ...(keyed ? ['headers = {"Authorization": f"Bearer {os.environ[\'BESTARM_KEY\']}"}'] : []),
      `experiment = httpx.Client(base_url="${base}"${keyed ? ", headers=headers" : ""})`,
      `assignment = experiment.post("/assignments", json={${experiment.sticky ? '"unit": "user-42"' : ""}}).raise_for_status().json()`,
      'print(assignment["arm"], assignment["value"])',
      "",
      `# Later, when it is known what happened: ${tell}.`,
      experiment.sticky
        ? `experiment.post("/rewards", json={"rewards": [{"unit": "user-42", "reward": ${reward}}]}).raise_for_status()`
        : `experiment.post(f"/assignments/{assignment['id']}/reward", json={"reward": ${reward}}).raise_for_status()`,
    ].join("\n"),
    TypeScript: [
      `const experiment = "${base}";`,
      `const headers = { "Content-Type": "application/json"${keyed ? ", Authorization: `Bearer ${process.env.BESTARM_KEY}`" : ""} };`,
      "const post = (path: string, body: object) =>",
      '  fetch(experiment + path, { method: "POST", headers, body: JSON.stringify(body) });',
      "",
      `const assignment = await (await post("/assignments", {${experiment.sticky ? ' unit: "user-42" ' : ""}})).json();`,
      "console.log(assignment.arm, assignment.value);",
      "",
      `// Later, when it is known what happened: ${tell}.`,
      experiment.sticky ? `await post("/rewards", { rewards: [{ unit: "user-42", reward: ${reward} }] });` : `await post(\`/assignments/\${assignment.id}/reward\`, { reward: ${reward} });`,
    ].join("\n"),
  };
}

/** The snippets, one at a time, each with a button that copies it. */
export function snippets(experiment) {
  const code = snippetsOf(experiment, location.origin, !isOpen());
  const text = h("code", { class: "code" });
  const tabs = Object.keys(code).map((language) => h("button", { type: "button", onClick: () => choose(language) }, language));
  const copy = copier(text);
  const element = h(
    "div",
    { class: "snippets" },
    h("div", { class: "filters" }, h("div", { class: "tabs", role: "group", "aria-label": "Language" }, tabs), copy),
    h("pre", { tabindex: "0", role: "group", "aria-label": "Code to paste" }, text),
    experiment.status === "draft" ? h("p", { class: "hint" }, "It is a draft: asks are refused until it is started.") : null,
  );

  function choose(language) {
    tabs.forEach((tab) => tab.setAttribute("aria-pressed", String(tab.textContent === language)));
    say(text, code[language]);
    copy.forget();
  }
  choose("curl");
  return element;
}

export const showSnippets = (experiment) => shown("Ask and tell", h("p", {}, "Ask which arm to show, and tell what came of it."), snippets(experiment));

/** For an experiment that nobody has asked yet; hidden otherwise. */
export function firstSteps() {
  const element = h("section", { class: "card first-steps", "aria-labelledby": "first-steps-title", hidden: true });
  let made = "";
  element.show = (experiment, recommendation) => {
    element.hidden = recommendation.draws > 0 || !["draft", "running"].includes(experiment.status);
    const shape = JSON.stringify([experiment.key, experiment.sticky, experiment.reward, experiment.status]);
    if (element.hidden || shape === made) return;
    made = shape;
    replace(
      element,
      h("h2", { id: "first-steps-title" }, "Nobody has asked yet"),
      h("p", { class: "muted" }, "Your code asks which arm to show, and tells what came of it. This works as it stands:"),
      snippets(experiment),
    );
  };
  return element;
}
