import { useState } from "react";
import { post } from "../api";
import { Composer } from "../composer";
import { useDraft } from "../drafts";
import { budgetOf } from "../limits";
import { DEFAULT } from "../method-cards";
import { isWhole, valuesOf, WAY } from "../method-panel";
import { preference } from "../preferences";
import { go, hrefOf } from "../route";
import { rename } from "../runs/rename";
import { refresh, useAction, useServer } from "../server";
import type { Method, Thread } from "../types";
import { CHAT } from "./turns";

interface Props {
  thread: Thread;
  /** The last message is being answered: the next one can be typed, not sent. */
  active: boolean;
  /** Called when a chat has received the message: the same run continues. */
  onSent: () => void;
}

/** Box for the next message of a chat, or for a follow-up that starts one, by default with the same method. */
export function FollowUpForm({ thread, active, onSent }: Props) {
  const { value } = useServer<Method[]>("methods");
  const methods = (value ?? []).filter((each) => !each.baseline && !isWhole(each));
  const [question, setQuestion] = useDraft(`after ${thread.id}`);
  const [way, setWay] = useState(WAY);
  const isChat = thread.method === CHAT;
  const before = isChat ? thread.options.values.method : thread.method;
  const find = (name: unknown) => methods.find((each) => each.name === name);
  const method = find(way.method) ?? find(before) ?? find(DEFAULT);
  const asking = useAction(async () => {
    const { id, options } = thread;
    const name = method?.name ?? DEFAULT;
    const isChanged = name !== before || Object.keys(way.typed).length > 0;
    const values = method && isChanged ? valuesOf(method, way.typed) : options.values;
    const budget = Object.keys(way.limits).length ? budgetOf(way.limits) : options.budget;
    const more = isChat
      ? { method: CHAT, thread: id, ...(isChanged && { values: { method: name, method_settings: values } }) }
      : { method: name, after: id, where: options.where, values, model: preference("model") };
    const made = await post<{ thread: string }>("runs", { question, budget, ...more });
    setQuestion("");
    if (isChat) onSent();
    else {
      await rename(made.thread, thread.title || thread.question);
      go(hrefOf("runs", made.thread));
    }
    refresh("runs?", `runs/${id}`);
  });
  return (
    <Composer
      label="Follow-up question"
      placeholder="Ask a follow-up…"
      question={question}
      onType={setQuestion}
      sending={{ ...asking, busy: asking.busy || active }}
      methods={methods}
      method={method}
      way={way}
      onChange={setWay}
    />
  );
}
