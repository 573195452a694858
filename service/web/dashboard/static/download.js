// The experiment's data as a file.

import { h } from "./dom.js";
import { Problem, head, path } from "./api.js";
import { confirmed } from "./dialog.js";
import { field } from "./fields.js";
import { nameOf } from "./standing.js";

const TABLES = {
  assignments: "Assignments: every draw, as it is now",
  observations: "Observations: rewards told without an ask",
  events: "Events: all that ever happened",
  history: "History: the course over time",
};
const FORMATS = { csv: "CSV, for spreadsheets", jsonl: "JSON lines", parquet: "Parquet, for pandas and DuckDB" };
// A HEAD has no words of its own.
const WORDS = { 501: "This service cannot write Parquet: it lacks the extra “parquet”. CSV and JSON lines hold the same." };

const choice = (name, options) =>
  h("select", { name }, Object.entries(options).map(([value, label]) => h("option", { value }, label)));

/** Choose a table and a format; the browser takes the file from there. */
export function download(experiment) {
  const of = choice("of", TABLES);
  const format = choice("format", FORMATS);
  return confirmed({
    title: `Download the data of “${nameOf(experiment)}”`,
    text: "All rows as of this moment. Assignments hold your units: treat them as personal data.",
    action: "Download",
    fields: [field("Table", "/query/of", of), field("Format", "/query/format", format)],
    run: async () => {
      const address = `${path(experiment.key, "export")}?of=${of.value}&format=${format.value}`;
      try {
        await head(address);
      } catch (problem) {
        throw problem.status in WORDS ? new Problem(problem.status, { detail: WORDS[problem.status] }) : problem;
      }
      const link = h("a", { href: address, download: true, hidden: true });
      document.body.append(link);
      link.click();
      link.remove();
    },
  });
}
