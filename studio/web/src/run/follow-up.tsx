import { useState } from "react";
import { post } from "../api";
import { DEFAULT } from "../ask";
import { useDraft } from "../drafts";
import { isWhole } from "../method-panel";
import { Problem } from "../parts";
import { isSendable, QuestionField } from "../question-field";
import { go, hrefOf } from "../route";
import { refresh, useAction, useServer } from "../server";
import type { Method, Thread } from "../types";

const CHAT = "chat";

interface Props {
  thread: Thread;
  /** Called when a chat has received the message: the same run continues. */
  onSent: () => void;
}

/** Form for the next message of a chat, or for a follow-up that starts one, by default with the same method. */
export function FollowUpForm({ thread, onSent }: Props) {
  const { value } = useServer<Method[]>("methods");
  const methods = (value ?? []).filter((each) => !each.baseline && !isWhole(each)).map(({ name }) => name);
  const [question, setQuestion] = useDraft(`after ${thread.id}`);
  const [chosen, setChosen] = useState("");
  const method = chosen || (methods.includes(thread.method) ? thread.method : DEFAULT);
  const asking = useAction(async () => {
    const { id, options } = thread;
    const more =
      thread.method === CHAT
        ? { method: CHAT, thread: id }
        : { method, after: id, where: options.where, ...(method === thread.method && { values: options.values }) };
    const made = await post<{ thread: string }>("runs", { question, budget: options.budget, ...more });
    setQuestion("");
    refresh("runs?");
    if (made.thread === id) onSent();
    else go(hrefOf("runs", made.thread));
  });
  const submit = (event: React.SyntheticEvent) => {
    event.preventDefault();
    if (isSendable(question) && !asking.busy) void asking.run();
  };
  return (
    <form className="follow-up stack" aria-label="Ask a follow-up" onSubmit={submit}>
      <QuestionField label="Follow-up question" rows={2} value={question} onType={setQuestion} onSubmit={submit} />
      <div className="row spread">
        {thread.method === CHAT ? (
          <span className="quiet">The next message of this chat.</span>
        ) : (
          <label className="inline">
            Method
            <select value={method} onChange={(event) => setChosen(event.target.value)}>
              {(methods.length ? methods : [method]).map((name) => (
                <option key={name}>{name}</option>
              ))}
            </select>
          </label>
        )}
        <button className="primary" disabled={asking.busy || !isSendable(question)}>
          Ask a follow-up
        </button>
      </div>
      <Problem>{asking.problem}</Problem>
    </form>
  );
}
