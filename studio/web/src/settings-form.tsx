import { useId } from "react";
import { ColumnsField } from "./columns-field";
import { COLUMNS, parsed, sentence, shown, type Field } from "./schema";

interface Props {
  fields: Field[];
  typed: Record<string, string>;
  onType: (typed: Record<string, string>) => void;
}

/** A field with a description for each setting; an empty field means the default. */
export function SettingsForm({ fields, typed, onType }: Props) {
  return (
    <div className="settings">
      {fields.map((field) => {
        const Input = field.name === COLUMNS ? ColumnsField : Setting;
        return (
          <Input
            key={field.name}
            field={field}
            text={typed[field.name] ?? ""}
            onType={(text) => onType({ ...typed, [field.name]: text })}
          />
        );
      })}
    </div>
  );
}

interface OneProps {
  field: Field;
  text: string;
  onType: (text: string) => void;
}

function Setting({ field, text, onType }: OneProps) {
  const id = useId();
  const problem = text && problemOf(field, text);
  const common = {
    id,
    name: field.name,
    value: text,
    "aria-describedby": `${id}-help`,
    "aria-invalid": Boolean(problem),
  };
  const options = field.kind === "boolean" ? ["true", "false"] : field.choices;
  return (
    <div className="setting">
      <label htmlFor={id}>
        {sentence(field.description) || field.name} <small className="code quiet">{field.name}</small>
      </label>
      {options.length ? (
        <select {...common} onChange={(event) => onType(event.target.value)}>
          <option value="">{field.fallback === null ? "default" : `${shown(field.fallback)} (default)`}</option>
          {options.map((option) => (
            <option key={option} value={option}>
              {option}
            </option>
          ))}
        </select>
      ) : (
        <input
          {...common}
          inputMode={field.kind === "whole" ? "numeric" : field.kind === "number" ? "decimal" : "text"}
          placeholder={shown(field.fallback)}
          onChange={(event) => onType(event.target.value)}
        />
      )}
      <span id={`${id}-help`} className="wrong">
        {problem}
      </span>
    </div>
  );
}

function problemOf(field: Field, text: string): string {
  try {
    parsed(field, text);
    return "";
  } catch (error) {
    return (error as Error).message;
  }
}
