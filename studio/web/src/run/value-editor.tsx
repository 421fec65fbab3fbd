/** Fields to edit a value of the state: texts, numbers and switches; entries of lists and keyed fields come and go. */

import { useId } from "react";
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
  onEdit: (value: Json) => void;
}

export function ValueEditor({ path, label, value, texts, onEdit }: Props) {
  if (typeof value === "object" && value !== null) {
    return <Entries path={path} label={label} value={value} texts={texts} onEdit={onEdit} />;
  }
  return <Leaf path={path} label={label} value={value} texts={texts} onEdit={onEdit} />;
}

function Leaf({
  path,
  label,
  value,
  texts,
  onEdit,
}: Omit<Props, "value"> & { value: string | number | boolean | null }) {
  const id = useId();
  const title = <label htmlFor={id}>{label || path}</label>;
  const common = { id, "aria-label": path };
  if (value === null) return <p className="leaf quiet">{label || path}: none</p>;
  if (typeof value === "string" && isReference(value)) {
    const passage = texts.passages.get(value);
    return <p className="leaf quiet">{passage ? `Passage: ${passage.title}` : "An archived text"}</p>;
  }
  if (typeof value === "boolean") {
    return (
      <div className="leaf">
        {title}
        <input
          {...common}
          type="checkbox"
          checked={value}
          onChange={(event) => {
            onEdit(event.target.checked);
          }}
        />
      </div>
    );
  }
  if (typeof value === "number") {
    return (
      <div className="leaf">
        {title}
        <input
          {...common}
          type="number"
          step="any"
          required
          defaultValue={value}
          onChange={({ target }) => {
            if (Number.isFinite(target.valueAsNumber)) onEdit(target.valueAsNumber);
          }}
        />
      </div>
    );
  }
  return (
    <div className="leaf">
      {title}
      <textarea
        {...common}
        rows={Math.min(8, 1 + Math.floor(value.length / 70))}
        value={value}
        onChange={(event) => {
          onEdit(event.target.value);
        }}
      />
    </div>
  );
}

function Entries({ path, label, value, texts, onEdit }: Omit<Props, "value"> & { value: Json[] | JsonObject }) {
  const entries = Object.entries(value);
  const open = isOpenEnded(value);
  const added = extendedBy(value);
  const fields = (
    <>
      {!entries.length && <p className="quiet">none</p>}
      {entries.map(([key, each]) => (
        <div key={key} className="entry">
          <ValueEditor
            path={`${path} ${words(key)}`}
            label={Array.isArray(value) ? String(Number(key) + 1) : words(key)}
            value={each}
            texts={texts}
            onEdit={(edited) => {
              onEdit(isObject(value) ? { ...value, [key]: edited } : value.with(Number(key), edited));
            }}
          />
          {open && (
            <button
              type="button"
              aria-label={`Remove ${path} ${words(key)}`}
              onClick={() => {
                const rest = entries.filter(([name]) => name !== key);
                onEdit(isObject(value) ? Object.fromEntries(rest) : rest.map(([, other]) => other));
              }}
            >
              ✕
            </button>
          )}
        </div>
      ))}
      {added && (
        <button
          type="button"
          className="add"
          aria-label={`Add to ${path}`}
          onClick={() => {
            onEdit(added);
          }}
        >
          Add
        </button>
      )}
    </>
  );
  if (path.split(" ").length > DEEP && entries.some(([, each]) => isObject(each))) {
    return (
      <details>
        <summary>
          {label} ({entries.length})
        </summary>
        <div className="entries">{fields}</div>
      </details>
    );
  }
  return (
    <fieldset className="group entries">
      {label && <legend>{label}</legend>}
      {fields}
    </fieldset>
  );
}

/** Lists of objects below this level, such as the citations of a note, are folded. */
const DEEP = 2;

/** True for a list, and for an object whose keys are names of entries, not of fields. */
function isOpenEnded(value: Json[] | JsonObject): boolean {
  return Array.isArray(value) || Object.values(value).every((each) => typeof each === "object" && each !== null);
}

/** The value with an empty entry of the same form as its last one; null if entries cannot be made by hand. */
export function extendedBy(value: Json[] | JsonObject): Json[] | JsonObject | null {
  const last = Object.values(value).at(-1);
  if (!isOpenEnded(value) || (typeof last === "string" && isReference(last))) return null;
  if (Array.isArray(value)) return [...value, emptied(last ?? "")];
  const numbers = Object.keys(value).map(Number).filter(Number.isInteger);
  if (last === undefined || !numbers.length) return null;
  return { ...value, [String(Math.max(...numbers) + 1)]: emptied(last) };
}

function emptied(value: Json): Json {
  if (Array.isArray(value)) return [];
  if (isObject(value)) return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, emptied(each)]));
  return typeof value === "string" ? "" : typeof value === "number" ? 0 : typeof value === "boolean" ? false : null;
}
