import { get, remove } from "../api";
import { Menu } from "../menu";
import { Problem } from "../parts";
import { go, hrefOf } from "../route";
import { markdownOf } from "../run/export";
import { save } from "../save";
import { Selection } from "../selection";
import { refresh, useAction } from "../server";
import type { Run, Thread } from "../types";
import { csvOf } from "./csv";

interface Props {
  chosen: Thread[];
  /** The selection is no longer needed. */
  onDone: () => void;
}

/** What can be done with the selected runs. */
export function SelectionBar({ chosen, onDone }: Props) {
  const exporting = useAction(async () => {
    const runs = await Promise.all(chosen.map(({ id }) => get<Run>(`runs/${id}`)));
    const answered = runs.flatMap(({ answer }) => (answer ? [markdownOf(answer)] : []));
    save("answers.md", answered.join("\n---\n\n"), "text/markdown");
  });
  const [first, second] = chosen;
  const items = [
    {
      label: "Table (CSV)",
      onChoose: () => save("runs.csv", csvOf(chosen), "text/csv"),
    },
    { label: "Answers (Markdown)", onChoose: () => void exporting.run() },
    {
      label: "Table (JSON)",
      onChoose: () => save("runs.json", JSON.stringify(chosen, null, 2), "application/json"),
    },
  ];
  return (
    <>
      <Selection
        ids={chosen.map(({ id }) => id)}
        noun="run"
        remark="The runs are deleted with all their checkpoints. Documents are not affected."
        remove={(id) => remove(`runs/${id}`)}
        onGone={() => refresh("runs?")}
        onDone={onDone}
      >
        <button
          disabled={chosen.length !== 2}
          onClick={() => {
            if (first && second) go(hrefOf("runs", first.id, { tab: "compare", a: first.id, b: second.id }));
          }}
        >
          Compare
        </button>
        <Menu label="Export" items={items} />
      </Selection>
      <Problem>{exporting.problem}</Problem>
    </>
  );
}
