import { useState, type ReactNode } from "react";
import { post, remove, request } from "../api";
import { Confirm } from "../dialog";
import { Menu } from "../menu";
import { inOrder, whatItDoes } from "../method-cards";
import { Problem } from "../parts";
import { go, hrefOf } from "../route";
import { copy, save } from "../save";
import { refresh, useAction, useServer } from "../server";
import type { Answer, JsonObject, Method, Thread } from "../types";
import { markdownOf } from "./export";
import { SURVEY } from "./survey";
import { CHAT } from "./turns";

interface Props {
  thread: Thread;
  answer: Answer;
  onResumed: () => void;
  children?: ReactNode;
}

/** What can be done with an answer; the rest is in menus. */
export function Actions({ thread, answer, onResumed, children }: Props) {
  const [deleting, setDeleting] = useState(false);
  const retrying = useRetry(thread, answer);
  const deletion = useAction(async () => {
    await remove(`runs/${thread.id}`);
    refresh("runs?");
    go(hrefOf(""));
  });
  const exporting = useAction(async () => {
    const response = await request(`runs/${thread.id}/export`);
    save(`run-${thread.id}.json`, await response.text(), "application/json");
  });
  const updating = useAction(async () => {
    await post(`runs/${thread.id}/resume`, { update: true });
    onResumed();
  });
  const copying = useAction(() => copy(markdownOf(answer)));
  const problem = [retrying, updating, deletion, exporting, copying].map((each) => each.problem).find(Boolean);
  const items = [
    {
      label: "Save as Markdown",
      onChoose: () => save(`answer-${thread.id}.md`, markdownOf(answer), "text/markdown"),
    },
    { label: "Save as JSON", onChoose: () => void exporting.run() },
    ...(thread.part_of ? [] : [{ label: "Delete this run", onChoose: () => setDeleting(true) }]),
  ];
  return (
    <>
      <div className="row actions">
        <button onClick={() => void copying.run()}>Copy</button>
        {answer.table ? (
          <button onClick={() => void updating.run()} disabled={updating.busy}>
            Ask new documents
          </button>
        ) : (
          <Retry retrying={retrying} />
        )}
        {answer.ask_all && (
          <button onClick={() => void retrying.run(SURVEY)} disabled={retrying.busy}>
            Ask all {answer.ask_all} documents
          </button>
        )}
        <a href={hrefOf("runs", runOf(thread, answer), { tab: "details" })}>Details</a>
        {children}
        <Menu label="More" items={items} />
        <Problem>{problem}</Problem>
      </div>
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
    </>
  );
}

/** The run with the steps of an answer: of a chat that of its method. */
export function runOf(thread: Thread, { hops }: Pick<Answer, "hops">): string {
  return thread.method === CHAT ? (hops?.at(-1)?.thread ?? thread.id) : thread.id;
}

/** Ask the question of an answer again, with another method or with the same one and its settings. */
function useRetry(thread: Thread, answer: Answer) {
  return useAction(async (other?: string) => {
    const { values, budget, where = "", model = "" } = thread.options;
    const isChat = thread.method === CHAT;
    const method = (isChat && answer.hops?.at(-1)?.method) || thread.method;
    const same = (isChat ? values.method_settings : values) as JsonObject | undefined;
    const more = other ? { method: other } : { method, values: same ?? {} };
    const { thread: made } = await post<{ thread: string }>("runs", {
      question: answer.question,
      budget,
      where,
      model,
      ...more,
    });
    refresh("runs?");
    go(hrefOf("runs", made));
  });
}

function Retry({ retrying }: { retrying: ReturnType<typeof useRetry> }) {
  const { value: methods } = useServer<Method[]>("methods");
  const others = inOrder(methods ?? []).map((method) => ({
    label: method.name,
    about: whatItDoes(method),
    onChoose: () => void retrying.run(method.name),
  }));
  return (
    <>
      <button onClick={() => void retrying.run()} disabled={retrying.busy}>
        Retry
      </button>
      <Menu label="Other method" items={others} />
    </>
  );
}
