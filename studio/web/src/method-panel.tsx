import { useDraft } from "./drafts";
import { FilterField } from "./filter-field";
import { LimitsForm, type Limits } from "./limits";
import { MethodCards } from "./method-cards";
import { fieldsOf, isForResearch, plainly } from "./schema";
import { SettingsForm } from "./settings-form";
import type { Method } from "./types";

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
  /** All messages are one run. */
  chat: boolean;
  /** The plan is shown and can be changed before it is carried out. */
  approval: boolean;
}

interface Props {
  methods: Method[];
  method: Method;
  way: Way;
  onChange: (way: Way) => void;
}

/** The methods, and the settings and limits of the chosen one. */
export function MethodPanel({ methods, method, way, onChange }: Props) {
  const [research, setResearch] = useDraft("research", localStorage);
  const fields = fieldsOf(method.settings).filter(({ name }) => !ELSEWHERE.includes(name));
  const visible = research
    ? fields
    : fields
        .filter((field) => !isForResearch(field))
        .map((field) => ({ ...field, description: plainly(field.description) }));
  return (
    <section id="method" aria-label="Method and settings" className="method-panel stack">
      <MethodCards
        methods={methods}
        chosen={method.name}
        onChoose={(name) => onChange({ ...way, method: name, typed: {}, approval: false })}
      />
      <div className="row">
        <Check
          label="Show me the plan first"
          checked={way.approval}
          onCheck={(approval) => {
            const hasPlan = isWhole(method) || method.name === PLANNING;
            const others = approval && !hasPlan ? { method: PLANNING, typed: {} } : {};
            onChange({ ...way, ...others, approval });
          }}
        />
        {!method.baseline && !isWhole(method) && (
          <Check label="Start a chat" checked={way.chat} onCheck={(chat) => onChange({ ...way, chat })} />
        )}
        <Check
          label="For research: all settings"
          checked={research !== ""}
          onCheck={(on) => setResearch(on ? "on" : "")}
        />
      </div>
      {visible.length > 0 && (
        <fieldset className="group">
          <legend>Settings of {method.name}</legend>
          <SettingsForm fields={visible} typed={way.typed} onType={(typed) => onChange({ ...way, typed })} />
        </fieldset>
      )}
      <LimitsForm limits={way.limits} onType={(limits) => onChange({ ...way, limits })} />
      <FilterField where={way.where} onType={(where) => onChange({ ...way, where })} />
    </section>
  );
}

interface CheckProps {
  label: string;
  checked: boolean;
  onCheck: (checked: boolean) => void;
}

function Check({ label, checked, onCheck }: CheckProps) {
  return (
    <label className="inline">
      <input type="checkbox" checked={checked} onChange={(event) => onCheck(event.target.checked)} />
      {label}
    </label>
  );
}
