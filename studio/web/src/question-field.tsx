const MAX_CHARACTERS = 20_000;

interface Props {
  label: string;
  rows: number;
  value: string;
  onType: (text: string) => void;
  onSubmit: (event: React.SyntheticEvent) => void;
}

/** Field for a question: Enter sends it, Shift+Enter starts a line. */
export function QuestionField({ label, rows, value, onType, onSubmit }: Props) {
  return (
    <label>
      {label}
      <textarea
        rows={rows}
        required
        maxLength={MAX_CHARACTERS}
        value={value}
        onChange={(event) => {
          onType(event.target.value);
        }}
        onKeyDown={(event) => {
          if (event.key === "Enter" && !event.shiftKey && !event.nativeEvent.isComposing) onSubmit(event);
        }}
      />
    </label>
  );
}
