import { useState } from "react";
import { post } from "./api";
import { useDraft } from "./drafts";
import { count } from "./format";
import { budgetOf } from "./limits";
import { isWhole, MethodPanel, PLANNING, type Way } from "./method-panel";
import { Problem } from "./parts";
import { isSendable, QuestionField } from "./question-field";
import { go, hrefOf } from "./route";
import { parsed, fieldsOf } from "./schema";
import { refresh, useAction, useServer } from "./server";
import type { DocumentRow, Json, Method } from "./types";

const WAY: Way = { method: "", typed: {}, limits: {}, where: "", chat: false, approval: false };

/** Form for a question with its method, settings and budget. `from` is the method that a question was asked with. */
export function Ask({ from }: { from: string }) {
  const { value: methods, problem } = useServer<Method[]>("methods");
  const [question, setQuestion] = useDraft("ask");
  const [way, setWay] = useState(WAY);
  const [open, setOpen] = useState(false);
  const first = useFirst();
  const method = methods?.find((each) => each.name === (way.method || (first && methodAfter(from, methods, first))));
  const asking = useAction(async () => {
    if (!method) return;
    const { thread } = await post<{ thread: string }>("runs", {
      question,
      budget: budgetOf(way.limits),
      where: way.where,
      ...withMode(way, method),
    });
    setQuestion("");
    refresh("runs?");
    go(hrefOf("runs", thread));
  });
  const submit = (event: React.SyntheticEvent) => {
    event.preventDefault();
    if (isSendable(question) && !asking.busy) void asking.run();
  };
  return (
    <article className="page ask">
      <header className="stack">
        <h1>Ask your documents</h1>
        <Setup />
      </header>
      {from && method && (
        <p className="hint">
          This question was answered with {from}. {method.name} is chosen now; compare the runs afterwards.
        </p>
      )}
      <form onSubmit={submit} className="stack">
        <QuestionField label="Question" rows={3} value={question} onType={setQuestion} onSubmit={submit} focused />
        <div className="row spread">
          <button
            type="button"
            aria-expanded={open}
            aria-controls="method"
            disabled={!method}
            onClick={() => setOpen(!open)}
          >
            Method: {method?.name ?? "…"} <span aria-hidden="true">{open ? "▴" : "▾"}</span>
          </button>
          <button className="primary" disabled={asking.busy || !isSendable(question) || !method}>
            {asking.busy ? "Asking…" : "Ask"}
          </button>
        </div>
        <Problem>{asking.problem || problem}</Problem>
        {open && methods && method && (
          <MethodPanel
            methods={[...methods].sort((a, b) => Number(b.name === DEFAULT) - Number(a.name === DEFAULT))}
            method={method}
            way={way}
            onChange={setWay}
          />
        )}
      </form>
    </article>
  );
}

export const DEFAULT = "auto";
/** The first method if no model server answers. */
const MODELLESS = "reader";

interface Health {
  model?: string;
  /** Why no model can be used. */
  problem?: string;
}

/** The method of a first question; undefined while it is not known whether a model server answers. */
function useFirst(): string | undefined {
  const { value: health } = useServer<Health>("/healthz");
  return health ? (health.model === undefined ? MODELLESS : DEFAULT) : undefined;
}

/** The method that is chosen first: for a retry, the first one that is not a baseline and was not used. */
export function methodAfter(
  from: string,
  methods: readonly Pick<Method, "name" | "baseline">[],
  first = DEFAULT,
): string {
  if (!from) return first;
  return methods.find((each) => !each.baseline && each.name !== from)?.name ?? DEFAULT;
}

/** The method and values of a run: a chat has another method answer. */
function withMode({ chat, approval, typed }: Way, method: Method) {
  const { name, baseline } = method;
  const values = valuesOf(method, typed);
  if (isWhole(method)) return { method: name, values: approval ? { ...values, approve: true } : values };
  const approves = approval && name === PLANNING;
  if (!approves && (!chat || baseline)) return { method: name, values };
  const inner = { method: name, method_settings: values, approve_plan: approves };
  return { method: "chat", values: chat ? inner : { ...inner, ask_back: false } };
}

const MOST = 1000;
const DOCUMENTS = `documents?limit=${MOST}`;

/** The names of the embedded models, with and without their training. */
const EMBEDDED = ["sleuth-small", "smollm2-135m-instruct", "sleuth-0.5b", "qwen2.5-coder-0.5b-instruct"];

/** The model and the number of documents in one line. */
function Setup() {
  const { value: health } = useServer<Health>("/healthz");
  const { value: documents } = useServer<DocumentRow[]>(DOCUMENTS);
  if (!health || !documents) return null;
  const { model, problem } = health;
  const isDemo = EMBEDDED.includes(model ?? "");
  const number = documents.length < MOST ? count(documents.length, "document") : `${count(MOST, "document")} or more`;
  return (
    <>
      <p className="quiet">
        {model && `Model: ${model}${isDemo ? " (demo model)" : ""} · `}
        <a href={hrefOf("documents")}>{number}</a>
      </p>
      {problem && (
        <p className="hint">
          {problem} The method {MODELLESS} answers without a model.
        </p>
      )}
      {isDemo && (
        <p className="hint">
          The demo model is small and often wrong. Use a real one:{" "}
          <code>SLEUTH_MODEL_URL=http://HOST:8000/v1 sleuth serve</code>
        </p>
      )}
      {!documents.length && (
        <p className="hint">
          No documents yet. <a href={hrefOf("documents")}>Add some</a> first.
        </p>
      )}
    </>
  );
}

/** The values that the user entered; the server uses its defaults for the others. */
function valuesOf(method: Method, typed: Record<string, string>): Record<string, Json> {
  const fields = fieldsOf(method.settings).filter((field) => typed[field.name]);
  return Object.fromEntries(fields.map((field) => [field.name, parsed(field, typed[field.name] ?? "")]));
}
