import { useEffect, useState } from "react";
import { post } from "./api";
import { useDraft } from "./drafts";
import { FilterField } from "./filter-field";
import { budgetOf, LimitsForm, type Limits } from "./limits";
import { MethodCards } from "./method-cards";
import { Problem } from "./parts";
import { isSendable, QuestionField } from "./question-field";
import { go, hrefOf } from "./route";
import { parsed, fieldsOf } from "./schema";
import { refresh, useAction, useServer } from "./server";
import { SettingsForm } from "./settings-form";
import type { DocumentRow, Json, Method } from "./types";

const DEFAULT = "par-rag";
/** The method whose plan can be shown before it is carried out. */
const PLANNING = "par-rag";

/** Form for a question with its method, settings and budget. `from` is the method that a question was asked with. */
export function Ask({ from }: { from: string }) {
  const { value: methods, problem } = useServer<Method[]>("methods");
  const [question, setQuestion] = useDraft("ask");
  const [name, setName] = useState(DEFAULT);
  const [typed, setTyped] = useState<Record<string, string>>({});
  const [limits, setLimits] = useState<Limits>({});
  const [where, setWhere] = useState("");
  const [mode, setMode] = useState<Mode>({ chat: false, approval: false });
  const method = methods?.find((each) => each.name === name) ?? methods?.[0];
  const asking = useAction(async () => {
    if (!method) return;
    const values = valuesOf(method, typed);
    const { thread } = await post<{ thread: string }>("runs", {
      question,
      budget: budgetOf(limits),
      where,
      ...withMode(mode, method, values),
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
      <h1>Ask your documents</h1>
      <SetupHints />
      {from && (
        <p className="hint">This question was answered with {from}. Choose another method, and compare the runs.</p>
      )}
      <form onSubmit={submit} className="stack">
        <QuestionField label="Question" rows={3} value={question} onType={setQuestion} onSubmit={submit} focused />
        {!question && <Examples onChoose={setQuestion} />}
        <div className="row spread">
          {method ? <ModeFields mode={mode} method={method} onChange={setMode} /> : <span />}
          <button className="primary" disabled={asking.busy || !isSendable(question) || !method}>
            {asking.busy ? "Asking…" : "Ask"}
          </button>
        </div>
        <Problem>{asking.problem || problem}</Problem>
        {methods && method && (
          <>
            <MethodCards
              methods={methods}
              chosen={method.name}
              onChoose={(chosen) => {
                setName(chosen);
                setTyped({});
              }}
            />
            <details className="box">
              <summary>Settings and limits</summary>
              <SettingsForm fields={fieldsOf(method.settings)} typed={typed} onType={setTyped} />
              <LimitsForm limits={limits} onType={setLimits} />
              <FilterField where={where} onType={setWhere} />
            </details>
          </>
        )}
      </form>
    </article>
  );
}

interface Mode {
  /** All messages are one run. */
  chat: boolean;
  /** The plan is shown and can be changed before it is carried out. */
  approval: boolean;
}

interface ModeProps {
  mode: Mode;
  method: Method;
  onChange: (mode: Mode) => void;
}

function ModeFields({ mode, method, onChange }: ModeProps) {
  return (
    <div className="row">
      {!method.baseline && (
        <label className="inline">
          <input
            type="checkbox"
            checked={mode.chat}
            onChange={(event) => {
              onChange({ ...mode, chat: event.target.checked });
            }}
          />
          Start a chat
        </label>
      )}
      {method.name === PLANNING && (
        <label className="inline">
          <input
            type="checkbox"
            checked={mode.approval}
            onChange={(event) => {
              onChange({ ...mode, approval: event.target.checked });
            }}
          />
          Show me the plan first
        </label>
      )}
    </div>
  );
}

/** The method and values of a run: a chat has another method answer. */
function withMode({ chat, approval }: Mode, { name, baseline }: Method, values: Record<string, Json>) {
  const approves = approval && name === PLANNING;
  if (!approves && (!chat || baseline)) return { method: name, values };
  const inner = { method: name, method_settings: values, approve_plan: approves };
  return { method: "chat", values: chat ? inner : { ...inner, ask_back: false } };
}

const EXAMPLES = 3;

/** Questions about the user's own documents; about their titles until the model has written better ones. */
function Examples({ onChoose }: { onChoose: (question: string) => void }) {
  const { value: documents } = useServer<DocumentRow[]>(`documents?limit=${EXAMPLES}`);
  const { value: written, problem } = useServer<string[]>("examples");
  const isMissing = written?.length === 0;
  useEffect(() => {
    if (isMissing) post("examples").catch(() => undefined);
  }, [isMissing]);
  if (!documents || !(written ?? problem)) return null;
  const questions = written?.length
    ? written
    : documents.map(({ title }) => `What do the documents report about ${title}?`);
  if (!questions.length) return null;
  return (
    <div className="row examples" role="group" aria-label="Examples">
      {[...new Set(questions)].map((question) => (
        <button
          key={question}
          type="button"
          onClick={() => {
            onChoose(question);
          }}
        >
          {question}
        </button>
      ))}
    </div>
  );
}

/** Hints if there are no documents or no model server. */
function SetupHints() {
  const { value: documents } = useServer<DocumentRow[]>("documents?limit=1");
  const { value: health } = useServer<{ problem?: string }>("/healthz");
  return (
    <>
      {documents?.length === 0 && (
        <p className="hint">
          No documents yet. <a href={hrefOf("documents")}>Add some</a> first.
        </p>
      )}
      {health?.problem && <p className="hint">The model server is not available. {health.problem}</p>}
    </>
  );
}

/** The values that the user entered; the server uses its defaults for the others. */
function valuesOf(method: Method, typed: Record<string, string>): Record<string, Json> {
  const fields = fieldsOf(method.settings).filter((field) => typed[field.name]);
  return Object.fromEntries(fields.map((field) => [field.name, parsed(field, typed[field.name] ?? "")]));
}
