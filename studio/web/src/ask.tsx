import { useState } from "react";
import { post } from "./api";
import { FilterField } from "./filter-field";
import { budgetOf, LimitsForm, type Limits } from "./limits";
import { Problem } from "./parts";
import { QuestionField } from "./question-field";
import { go, hrefOf } from "./route";
import { runsChanged } from "./run-list";
import { parsed, fieldsOf } from "./schema";
import { SettingsForm } from "./settings-form";
import type { DocumentRow, Json, Method } from "./types";
import { useAction, useLoaded } from "./use";

const DEFAULT = "par-rag";

/** Form for a question with its method, settings and budget. */
export function Ask() {
  const { value: methods, problem } = useLoaded<Method[]>("methods");
  const [question, setQuestion] = useState("");
  const [name, setName] = useState(DEFAULT);
  const [typed, setTyped] = useState<Record<string, string>>({});
  const [limits, setLimits] = useState<Limits>({});
  const [where, setWhere] = useState("");
  const method = methods?.find((each) => each.name === name) ?? methods?.[0];
  const asking = useAction(async () => {
    const values = valuesOf(method, typed);
    const body = { question, method: method?.name, values, budget: budgetOf(limits), where };
    const { thread } = await post<{ thread: string }>("runs", body);
    runsChanged();
    go(hrefOf("runs", thread));
  });
  const submit = (event: React.SyntheticEvent) => {
    event.preventDefault();
    if (question.trim() && !asking.busy) void asking.run();
  };
  return (
    <article className="page ask">
      <h1>Ask your documents</h1>
      <SetupHints />
      <form onSubmit={submit} className="stack">
        <QuestionField label="Question" rows={3} value={question} onType={setQuestion} onSubmit={submit} />
        <div className="row spread">
          <label className="inline">
            Method
            <select
              value={method?.name ?? ""}
              onChange={(event) => {
                setName(event.target.value);
                setTyped({});
              }}
            >
              {methods?.map((each) => (
                <option key={each.name}>{each.name}</option>
              ))}
            </select>
          </label>
          <button className="primary" disabled={asking.busy || !question.trim() || !method}>
            {asking.busy ? "Asking…" : "Ask"}
          </button>
        </div>
        <Problem>{asking.problem || problem}</Problem>
        {method && (
          <>
            <p className="quiet">
              {sentence(method.summary)} {method.calls && `Model calls: ${method.calls}.`}{" "}
              <span className="paper">{method.paper}</span>
            </p>
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

/** Hints if there are no documents or no model server. */
function SetupHints() {
  const { value: documents } = useLoaded<DocumentRow[]>("documents?limit=1");
  const { value: health } = useLoaded<{ problem?: string }>("/healthz");
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

function sentence(line: string): string {
  return `${line.charAt(0).toUpperCase()}${line.slice(1)}.`;
}

/** The values that the user entered; the server uses its defaults for the others. */
function valuesOf(method: Method | undefined, typed: Record<string, string>): Record<string, Json> {
  const fields = method ? fieldsOf(method.settings).filter((field) => typed[field.name]) : [];
  return Object.fromEntries(fields.map((field) => [field.name, parsed(field, typed[field.name] ?? "")]));
}
