import { isObject, textOf } from "./json";
import type { Field } from "./schema";
import type { Json } from "./types";

const KINDS = ["text", "number", "date", "yes-no"];

interface Column {
  name: string;
  question: string;
  kind: string;
}

interface Props {
  field: Field;
  /** The columns as JSON; empty if the model plans them. */
  text: string;
  onType: (text: string) => void;
}

/** The columns of a survey: what each document is asked. */
export function ColumnsField({ text, onType }: Props) {
  const columns = columnsIn(text);
  const change = (next: Column[]) => onType(next.length ? JSON.stringify(next) : "");
  const edit = (at: number, part: Partial<Column>) =>
    change(columns.map((each, index) => (index === at ? { ...each, ...part } : each)));
  return (
    <fieldset className="group columns">
      <legend>Columns</legend>
      <p className="quiet">Each document is asked these questions. Without any, the model plans them.</p>
      {columns.map(({ name, question, kind }, at) => (
        <div className="row" key={at}>
          <input
            aria-label={`Name of column ${at + 1}`}
            placeholder="name"
            value={name}
            onChange={(event) => edit(at, { name: event.target.value })}
          />
          <input
            className="grow"
            aria-label={`Question of column ${at + 1}`}
            placeholder="When does it end?"
            value={question}
            onChange={(event) => edit(at, { question: event.target.value })}
          />
          <select
            aria-label={`Kind of column ${at + 1}`}
            value={kind}
            onChange={(event) => edit(at, { kind: event.target.value })}
          >
            {KINDS.map((each) => (
              <option key={each}>{each}</option>
            ))}
          </select>
          <button
            type="button"
            aria-label={`Remove column ${at + 1}`}
            onClick={() => change(columns.filter((_, index) => index !== at))}
          >
            Remove
          </button>
        </div>
      ))}
      <button type="button" onClick={() => change([...columns, { name: "", question: "", kind: "text" }])}>
        Add a column
      </button>
    </fieldset>
  );
}

export function columnsIn(text: string): Column[] {
  const listed = text ? (JSON.parse(text) as Json) : [];
  return Array.isArray(listed)
    ? listed.filter(isObject).map((each) => ({
        name: textOf(each.name),
        question: textOf(each.question),
        kind: textOf(each.kind) || "text",
      }))
    : [];
}
