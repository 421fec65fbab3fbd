import { useState } from "react";
import { post, remove, request } from "../api";
import { Confirm } from "../dialog";
import { keepDraft } from "../drafts";
import { Menu } from "../menu";
import { Problem } from "../parts";
import { go, hrefOf } from "../route";
import { copy, save } from "../save";
import { refresh, useAction } from "../server";
import type { Answer, Thread } from "../types";
import { markdownOf } from "./export";
import { SURVEY } from "./survey";

interface Props {
  thread: Thread;
  answer: Answer | null;
  running: boolean;
  /** The run can be resumed. */
  isResumable: boolean;
  onResumed: () => void;
}

/** Buttons to stop an active run and to resume a stopped one, and a menu with everything else. */
export function Actions({ thread, answer, running, isResumable, onResumed }: Props) {
  const [deleting, setDeleting] = useState(false);
  const stopping = useAction(() => post(`runs/${thread.id}/stop`));
  const resuming = useAction(async () => {
    await post(`runs/${thread.id}/resume`);
    onResumed();
  });
  const deletion = useAction(async () => {
    await remove(`runs/${thread.id}`);
    refresh("runs?");
    go(hrefOf("runs"));
  });
  const exporting = useAction(async () => {
    const response = await request(`runs/${thread.id}/export`);
    save(`run-${thread.id}.json`, await response.text(), "application/json");
  });
  const updating = useAction(async () => {
    await post(`runs/${thread.id}/resume`, { update: true });
    onResumed();
  });
  const surveying = useAction(async () => {
    const made = await post<{ thread: string }>("runs", { question: thread.question, method: SURVEY });
    go(hrefOf("runs", made.thread));
  });
  const markdown = () => (answer ? markdownOf(answer) : "");
  const copying = useAction(() => copy(markdown()));
  const problem = [stopping, resuming, updating, surveying, deletion, exporting, copying]
    .map((each) => each.problem)
    .find(Boolean);
  const items = [
    { label: "Copy the answer", disabled: !answer, onChoose: () => void copying.run() },
    {
      label: "Save as Markdown",
      disabled: !answer,
      onChoose: () => save(`answer-${thread.id}.md`, markdown(), "text/markdown"),
    },
    { label: "Save as JSON", onChoose: () => void exporting.run() },
    {
      label: "Delete this run",
      disabled: running,
      onChoose: () => setDeleting(true),
    },
  ];
  return (
    <div className="row actions">
      {running && (
        <button className="danger" onClick={() => void stopping.run()} disabled={stopping.busy}>
          {stopping.busy ? "Stopping…" : "Stop"}
        </button>
      )}
      {isResumable && (
        <button className="primary" onClick={() => void resuming.run()} disabled={resuming.busy}>
          Resume
        </button>
      )}
      {!running && answer?.table && (
        <button onClick={() => void updating.run()} disabled={updating.busy}>
          Ask new documents
        </button>
      )}
      {!running && answer?.ask_all && (
        <button onClick={() => void surveying.run()} disabled={surveying.busy}>
          Ask all {answer.ask_all} documents
        </button>
      )}
      {!running && !answer?.table && (
        <button
          onClick={() => {
            keepDraft("ask", answer?.question ?? thread.question);
            go(hrefOf("", "", { from: thread.method }));
          }}
        >
          Retry with another method
        </button>
      )}
      <Menu label="More" items={items} />
      <Problem>{problem}</Problem>
      {deleting && (
        <Confirm
          title="Delete this run?"
          action="Delete"
          onConfirm={() => void deletion.run()}
          onClose={() => setDeleting(false)}
        >
          The run is deleted with all its checkpoints. Documents are not affected.
        </Confirm>
      )}
    </div>
  );
}
