import { createRoot } from "react-dom/client";
import { App } from "./app";
import "./styles/base.css";
import "./styles/layout.css";
import "./styles/run.css";
import "./styles/explorer.css";

const root = document.getElementById("root");
if (root) createRoot(root).render(<App />);
