import { useState } from "react";
import { post } from "./api";
import { Composer } from "./composer";
import { Upload } from "./documents/upload";
import { useDraft } from "./drafts";
import { count } from "./format";
import { budgetOf } from "./limits";
import { DEFAULT, inOrder } from "./method-cards";
import { isWhole, PLANNING, valuesOf, WAY, type Way } from "./method-panel";
import { Problem } from "./parts";
import { preference, usePreference } from "./preferences";
import { go, hrefOf } from "./route";
import { refresh, useAction, useServer } from "./server";
import type { DocumentRow, Health, Method } from "./types";

const MOST = 1000;
const DOCUMENTS = `documents?limit=${MOST}`;

/** The first screen: one box for a question, and examples of questions, or the place to add documents. */
export function Ask() {
  const { value: methods, problem } = useServer<Method[]>("methods");
  const { value: documents } = useServer<DocumentRow[]>(DOCUMENTS);
  const { value: health } = useServer<Health>("/healthz");
  const [question, setQuestion] = useDraft("ask");
  const [way, setWay] = useState(WAY);
  const first = health && (health.model === undefined ? MODELLESS : DEFAULT);
  const method = methods?.find((each) => each.name === (way.method || first));
  const asking = useAction(async (text: string = question) => {
    const { thread } = await post<{ thread: string }>("runs", {
      question: text,
      budget: budgetOf(way.limits),
      where: way.where,
      model: preference("model"),
      ...(method && withMode(way, method, health?.model !== undefined && isTalk(text))), // else the server chooses
    });
    if (text === question) setQuestion("");
    refresh("runs?");
    go(hrefOf("runs", thread));
  });
  const number = documents && numberOf(documents);
  return (
    <article className="first">
      <h1>Ask your documents</h1>
      <Composer
        label="Question"
        placeholder={documents?.length ? `Ask about ${number}…` : "Ask a question…"}
        question={question}
        onType={setQuestion}
        sending={{ ...asking, run: () => asking.run() }}
        methods={inOrder(methods ?? [])}
        method={method}
        way={way}
        onChange={setWay}
        focused
        isFirst
      />
      <Problem>{problem}</Problem>
      {documents?.length === 0 && <Upload ingest="" onRead={() => refresh("documents")} />}
      {documents && documents.length > 0 && <Examples onChoose={(text) => void asking.run(text)} />}
      {health && number && <Setup health={health} documents={number} />}
    </article>
  );
}

/** The first method if no model server answers. */
const MODELLESS = "reader";

function numberOf(documents: DocumentRow[]): string {
  return documents.length < MOST ? count(documents.length, "document") : `${count(MOST, "document")} or more`;
}

const FEW_WORDS = 3;

/** True for a message that may be no question, such as a greeting or a command: a chat replies to it. */
export function isTalk(message: string): boolean {
  const text = message.trim();
  return /^\/[a-z]+(\s|$)/i.test(text) || (!text.includes("?") && text.split(/\s+/).length <= FEW_WORDS);
}

/** The method and values of a run: a chat has another method answer. */
function withMode({ approval, typed }: Way, method: Method, talk: boolean) {
  const { name, baseline } = method;
  const values = valuesOf(method, typed);
  if (isWhole(method)) return { method: name, values: approval ? { ...values, approve: true } : values };
  const approves = approval && name === PLANNING;
  if (!approves && (!talk || baseline)) return { method: name, values };
  const inner = { method: name, method_settings: values, approve_plan: approves };
  return { method: "chat", values: talk ? inner : { ...inner, ask_back: false } };
}

/** Questions that the collection may answer. */
function Examples({ onChoose }: { onChoose: (question: string) => void }) {
  const { value: examples } = useServer<string[]>("examples");
  return (
    <ul className="examples" aria-label="Examples">
      {examples?.map((question) => (
        <li key={question}>
          <button onClick={() => onChoose(question)}>{question}</button>
        </li>
      ))}
    </ul>
  );
}

/** The names of the embedded models, with and without their training. */
const EMBEDDED = ["tiny", "small", "tiny-base", "small-base"];

/** The model and the number of documents in one line. */
function Setup({ health, documents }: { health: Health; documents: string }) {
  const chosen = usePreference("model");
  const { model, problem } = health;
  const isDemo = !chosen && EMBEDDED.includes(model ?? "");
  return (
    <>
      <p className="quiet">
        <a href={hrefOf("documents")}>{documents}</a>
        {model && ` · ${chosen || model}${isDemo ? ", a demo model" : ""}`}
      </p>
      {problem && <p className="hint">The method {MODELLESS} answers without a model.</p>}
      {isDemo && (
        <p className="hint">
          The demo model is small and often wrong. Use a real one:{" "}
          <code>SLEUTH_MODEL_URL=http://HOST:8000/v1 sleuth serve</code>
        </p>
      )}
    </>
  );
}
