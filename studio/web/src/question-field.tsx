import { useId } from "react";
import { number } from "./format";

export const MAX_CHARACTERS = 20_000;

/** True if a question can be sent. */
export function isSendable(question: string): boolean {
  return question.trim() !== "" && question.trim().length <= MAX_CHARACTERS;
}

interface Props {
  label: string;
  placeholder: string;
  value: string;
  onType: (text: string) => void;
  onSubmit: (event: React.SyntheticEvent) => void;
  /** The field receives the focus when it is shown. */
  focused: boolean;
}

/** Field for a question: Enter sends it, Shift+Enter starts a line. A question that is too long is refused visibly. */
export function QuestionField({ label, placeholder, value, onType, onSubmit, focused }: Props) {
  const id = useId();
  const length = value.trim().length;
  const isTooLong = length > MAX_CHARACTERS;
  return (
    <>
      <textarea
        ref={focused ? focus : null}
        rows={1}
        required
        value={value}
        aria-label={label}
        placeholder={placeholder}
        aria-invalid={isTooLong}
        aria-describedby={`${id}-problem`}
        onChange={(event) => onType(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === "Enter" && !event.shiftKey && !event.nativeEvent.isComposing) onSubmit(event);
        }}
      />
      <p id={`${id}-problem`} className="wrong" role="status">
        {isTooLong &&
          `The question has ${number(length)} characters; the most is ${number(MAX_CHARACTERS)}. Add long material as a document and ask about it.`}
      </p>
    </>
  );
}

function focus(field: HTMLTextAreaElement | null) {
  field?.focus({ preventScroll: true });
}
