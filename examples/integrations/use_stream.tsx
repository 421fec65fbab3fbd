// A page of React streams the answers of `sleuth serve`: <Chat apiUrl="http://127.0.0.1:8100/langgraph" />
import { useStream } from "@langchain/langgraph-sdk/react";
import type { Message } from "@langchain/langgraph-sdk";

export function Chat({ apiUrl }: { apiUrl: string }) {
  const { messages, submit } = useStream<{ messages: Message[] }>({ apiUrl, assistantId: "chat" });
  const ask = (form: FormData) => submit({ messages: [{ type: "human", content: String(form.get("question")) }] });
  return (
    <form action={ask}>
      {messages.map((message) => <p key={message.id}>{String(message.content)}</p>)}
      <input name="question" />
    </form>
  );
}
