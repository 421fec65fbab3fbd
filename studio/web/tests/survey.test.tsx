import { QueryClientProvider } from "@tanstack/react-query";
import { renderToStaticMarkup } from "react-dom/server";
import { expect, test } from "vitest";
import { columnsIn } from "../src/columns-field";
import { NOTHING, reduce } from "../src/events";
import { surveyOf } from "../src/run/survey";
import { SurveyTable } from "../src/run/survey-table";
import { client } from "../src/server";

const COLUMNS = [{ name: "end", question: "When does it end?", kind: "date" }];
const cell = (value: string, doubt?: string) => ({ end: { value, citations: [], ...(doubt && { doubt }) } });

function live(...updates: [string, object][]) {
  return updates.reduce((state, [node, update], at) => {
    const data = { thread: "t", node, state: "finished", method: "survey", update };
    return reduce(state, { id: String(at + 1), name: "step", data: JSON.stringify(data) });
  }, NOTHING);
}

test("the table of a running survey fills with its steps", () => {
  const about = { title: "Alder", source: "a.md" };
  const begun = live(["plan", { columns: COLUMNS }], ["select", { documents: { a: about, b: about, c: null } }]);
  expect(surveyOf(begun)?.rows.map(({ document, cells }) => [document, cells])).toEqual([
    ["a", null],
    ["b", null],
  ]);
  const filled = live(
    ["plan", { columns: COLUMNS }],
    ["select", { documents: { a: about } }],
    ["read", { rows: { a: cell("2027") } }],
    ["verify", { rows: { a: cell("2027", "no date") } }],
  );
  expect(surveyOf(filled)?.rows[0]?.cells?.end?.doubt).toBe("no date");
});

test("a run of another method has no table", () => {
  expect(surveyOf(NOTHING)).toBeNull();
});

test("rows that do not meet the conditions are hidden first, doubts are shown", () => {
  const row = (document: string, is_counted: boolean, cells: ReturnType<typeof cell>) => ({
    document,
    title: document,
    source: "",
    is_counted,
    cells,
  });
  const rows = [row("Alder", true, cell("2027", "no date")), row("Birch", false, cell("2026"))];
  const html = renderToStaticMarkup(
    <QueryClientProvider client={client}>
      <SurveyTable survey={{ columns: COLUMNS, figures: ["documents asked: 2 of 2"], rows }} id="t" />
    </QueryClientProvider>,
  );
  expect(html).toContain("in doubt: no date");
  expect(html).toContain("Also the 1 that do not meet the conditions");
  expect(html).not.toContain("Birch");
  expect(html).toContain("Excel");
});

test("columns are read from JSON, with a kind", () => {
  expect(columnsIn('[{"name": "end", "question": "When?"}]')).toEqual([
    { name: "end", question: "When?", kind: "text" },
  ]);
  expect(columnsIn("")).toEqual([]);
});
