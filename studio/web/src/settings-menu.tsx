import { Popup } from "./menu";
import { applyTheme, setPreference, usePreference } from "./preferences";
import { useServer } from "./server";
import type { Health } from "./types";

const THEMES = { "": "As the system", light: "Light", dark: "Dark" };

/** A menu with the model of new runs, of those that the server offers, and the colors of the page. */
export function SettingsMenu() {
  const { value: health } = useServer<Health>("/healthz");
  const { value: offered } = useServer<string[]>("offered-models");
  const model = usePreference("model");
  const theme = usePreference("theme");
  const others = (offered ?? []).filter((name) => name !== health?.model);
  const models: Record<string, string> = {
    "": health?.model ? `${health.model} (default)` : "none",
    ...Object.fromEntries(others.map((name) => [name, name])),
  };
  return (
    <Popup label="Settings">
      <Choice
        label="Model"
        options={models}
        chosen={model in models ? model : ""}
        onChoose={(name) => setPreference("model", name)}
      />
      <Choice
        label="Colors"
        options={THEMES}
        chosen={theme}
        onChoose={(name) => {
          setPreference("theme", name);
          applyTheme();
        }}
      />
    </Popup>
  );
}

interface ChoiceProps {
  label: string;
  options: Record<string, string>;
  chosen: string;
  onChoose: (name: string) => void;
}

function Choice({ label, options, chosen, onChoose }: ChoiceProps) {
  return (
    <fieldset className="group">
      <legend>{label}</legend>
      {Object.entries(options).map(([name, text]) => (
        <label key={name}>
          <input type="radio" name={label} checked={name === chosen} onChange={() => onChoose(name)} /> {text}
        </label>
      ))}
    </fieldset>
  );
}
