/** Fields to edit a value of the state: texts, numbers and switches; entries of lists and keyed fields come and go. */

import { isReference } from "../changes";
import { words } from "../format";
import { isObject } from "../json";
import type { Texts } from "../texts";
import type { Json, JsonObject } from "../types";

interface Props {
  /** The path of the value, as in "plan 2 question". */
  path: string;
  label: string;
  value: Json;
  texts: Texts;
  /** Its entries are shown. */
  open?: boolean;
  onEdit: (value: Json) => void;
}

export function ValueEditor({ value, ...props }: Props) {
  if (typeof value === "object" && value !== null) return <Entries value={value} {...props} />;
  const { path, label, texts } = props;
  if (value === null) return <p className="quiet">{label}: none</p>;
  if (typeof value === "string" && isReference(value)) {
    return <p className="quiet">Passage: {texts.passages.get(value)?.title ?? "an archived text"}</p>;
  }
  return (
    <label className="leaf">
      <span>{label}</span>
      <Field value={value} path={path} onEdit={props.onEdit} />
    </label>
  );
}

interface FieldProps extends Pick<Props, "path" | "onEdit"> {
  value: string | number | boolean;
}

function Field({ path, value, onEdit }: FieldProps) {
  const name = { "aria-label": path };
  if (typeof value === "boolean") {
    return <input {...name} type="checkbox" checked={value} onChange={({ target }) => onEdit(target.checked)} />;
  }
  if (typeof value === "number") {
    const edit = (typed: number) => onEdit(Number.isFinite(typed) ? typed : value);
    return (
      <input
        {...name}
        type="number"
        step="any"
        required
        defaultValue={value}
        onChange={({ target }) => edit(target.valueAsNumber)}
      />
    );
  }
  const rows = Math.min(8, 1 + Math.floor(value.length / 70));
  return <textarea {...name} rows={rows} value={value} onChange={({ target }) => onEdit(target.value)} />;
}

type EntriesProps = Omit<Props, "value"> & { value: Json[] | JsonObject };

function Entries({ path, label, value, texts, open, onEdit }: EntriesProps) {
  const entries = Object.entries(value);
  const added = extendedBy(value);
  const edit = (key: string, edited: Json) =>
    onEdit(isObject(value) ? { ...value, [key]: edited } : value.with(Number(key), edited));
  const removeEntry = (key: string) => {
    const rest = entries.filter(([name]) => name !== key);
    onEdit(isObject(value) ? Object.fromEntries(rest) : rest.map(([, other]) => other));
  };
  const nameOf = (key: string) => (isObject(value) ? words(key) : String(Number(key) + 1));
  // Lists of objects far below, such as the citations of a note, are folded.
  const folded = path.split(" ").length > 2 && entries.some(([, each]) => isObject(each));
  return (
    <details className="entries" open={open ?? !folded}>
      <summary>
        {label} ({entries.length})
      </summary>
      {entries.map(([key, each]) => (
        <div key={key} className="entry">
          <ValueEditor
            path={`${path} ${nameOf(key)}`}
            label={nameOf(key)}
            value={each}
            texts={texts}
            onEdit={(edited) => edit(key, edited)}
          />
          {isOpenEnded(value) && (
            <button type="button" aria-label={`Remove ${path} ${nameOf(key)}`} onClick={() => removeEntry(key)}>
              ✕
            </button>
          )}
        </div>
      ))}
      {added && (
        <button type="button" aria-label={`Add to ${path}`} onClick={() => onEdit(added)}>
          Add
        </button>
      )}
    </details>
  );
}

/** True for a list, and for an object whose keys are names of entries, not of fields. */
function isOpenEnded(value: Json[] | JsonObject): boolean {
  return Array.isArray(value) || Object.values(value).every((each) => typeof each === "object" && each !== null);
}

/** The value with a copy of its last entry, to be edited; null if entries cannot be made by hand. */
export function extendedBy(value: Json[] | JsonObject): Json[] | JsonObject | null {
  const last = Object.values(value).at(-1);
  if (!isOpenEnded(value) || (typeof last === "string" && isReference(last))) return null;
  if (Array.isArray(value)) return [...value, last ?? ""];
  const numbers = Object.keys(value).map(Number).filter(Number.isInteger);
  return last === undefined || !numbers.length ? null : { ...value, [String(Math.max(...numbers) + 1)]: last };
}
