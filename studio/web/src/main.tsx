import { createRoot } from "react-dom/client";
import { App } from "./app";
import { applyTheme } from "./preferences";
import "./styles/base.css";
import "./styles/layout.css";
import "./styles/run.css";
import "./styles/explorer.css";

applyTheme();
const root = document.getElementById("root");
if (root) createRoot(root).render(<App />);
