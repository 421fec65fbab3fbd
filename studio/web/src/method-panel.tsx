import { LimitsForm, type Limits } from "./limits";
import { MethodCards } from "./method-cards";
import { setPreference, usePreference } from "./preferences";
import { fieldsOf, isForResearch, parsed, plainly } from "./schema";
import { SettingsForm } from "./settings-form";
import type { Json, Method } from "./types";

/** The method whose plan can be shown before it is carried out. */
export const PLANNING = "par-rag";

/** True for a survey or a report: it waits for approval by itself, and is not part of a chat. */
export function isWhole({ settings }: Pick<Method, "settings">): boolean {
  return fieldsOf(settings).some(({ name }) => name === "approve");
}

/** The settings that the page has other means for. */
const ELSEWHERE = ["approve", "sections"];

/** How a question is answered. */
export interface Way {
  /** The name of the method. */
  method: string;
  /** What was typed for its settings. */
  typed: Record<string, string>;
  limits: Limits;
  where: string;
  /** The plan is shown and can be changed before it is carried out. */
  approval: boolean;
}

export const WAY: Way = { method: "", typed: {}, limits: {}, where: "", approval: false };

interface Props {
  methods: Method[];
  method: Method;
  way: Way;
  onChange: (way: Way) => void;
}

/** The methods, and the settings and limits of the chosen one. */
export function MethodPanel({ methods, method, way, onChange }: Props) {
  const research = usePreference("research");
  const fields = fieldsOf(method.settings).filter(({ name }) => !ELSEWHERE.includes(name));
  const visible = research
    ? fields
    : fields
        .filter((field) => !isForResearch(field))
        .map((field) => ({ ...field, description: plainly(field.description) }));
  return (
    <section aria-label="Method and settings" className="method-panel stack">
      <MethodCards
        methods={methods}
        chosen={method.name}
        onChoose={(name) => onChange({ ...way, method: name, typed: {}, approval: false })}
      />
      <details className="stack" open={research !== ""}>
        <summary>Settings and budget</summary>
        <label className="inline">
          <input
            type="checkbox"
            checked={research !== ""}
            onChange={(event) => setPreference("research", event.target.checked ? "on" : "")}
          />
          For research: all settings
        </label>
        {visible.length > 0 && (
          <fieldset className="group">
            <legend>Settings of {method.name}</legend>
            <SettingsForm fields={visible} typed={way.typed} onType={(typed) => onChange({ ...way, typed })} />
          </fieldset>
        )}
        <LimitsForm limits={way.limits} onType={(limits) => onChange({ ...way, limits })} />
      </details>
    </section>
  );
}

/** The values that the user entered; the server uses its defaults for the others. */
export function valuesOf(method: Method, typed: Record<string, string>): Record<string, Json> {
  const fields = fieldsOf(method.settings).filter((field) => typed[field.name]);
  return Object.fromEntries(fields.map((field) => [field.name, parsed(field, typed[field.name] ?? "")]));
}
