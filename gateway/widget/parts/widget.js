// The element `<refdesk-widget>`, and the launcher that one script tag makes.

import { Conversation } from "./conversation.js";
import { Desk } from "./desk.js";
import { icon, make } from "./elements.js";
import { Keeping } from "./keeping.js";
import { directionOf, known, wordsIn } from "./languages.js";
import { Panel } from "./panel.js";
import { Person } from "./person.js";
import { STYLES } from "./styles.js";

const NAME = "refdesk-widget";
const PERSON_TOKEN = "person-token";
const SMALL = "(max-width: 600px), (max-height: 480px)";
const SCRIPT = document.currentScript;
const REBUILDS = [
  "assistant", "desk", "disclaimer", "greeting", "heading", "key", "label", "lang", "mode",
  "person", "placeholder", "questions", "remember", "source-url",
];

class RefdeskWidget extends HTMLElement {
  static observedAttributes = [...REBUILDS, "open", PERSON_TOKEN];

  constructor() {
    super();
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(STYLES);
    this.root = this.attachShadow({ mode: "open" });
    this.root.adoptedStyleSheets = [sheet];
    this.person = new Person();
  }

  connectedCallback() {
    if (Object.hasOwn(this, "personToken")) {
      // It was set before the script had defined the element.
      const given = this.personToken;
      delete this.personToken;
      this.personToken = given;
    }
    this.#build();
  }

  disconnectedCallback() {
    this.#unbuild();
  }

  attributeChangedCallback(name, before, now) {
    if (before === now) return;
    if (name === PERSON_TOKEN) this.personToken = now;
    else if (!this.panel) return;
    else if (name !== "open") this.#later();
    else if (now === null) this.#shut();
    else this.#show();
  }

  /** Open the panel of a launcher. */
  open() {
    this.setAttribute("open", "");
  }

  /** Close the panel of a launcher. */
  close() {
    this.removeAttribute("open");
  }

  /** Ask a question, as if it was typed. */
  ask(text) {
    const question = String(text).trim();
    if (!question || !this.panel) return;
    if (!this.inline) this.open();
    this.panel.ask(question);
  }

  /** Forget the conversation; resolves to whether the desk could be reached. */
  reset() {
    return this.conversation.reset();
  }

  /** Take the token of the person who asks, or a function that returns one: see docs/widget.md. */
  set personToken(source) {
    this.person.use(source);
    // Another person may read something else.
    if (this.panel) this.conversation.refresh();
  }

  get inline() {
    return this.getAttribute("mode") === "inline";
  }

  /** Several attributes that change together build once. */
  #later() {
    if (this.changed) return;
    this.changed = true;
    queueMicrotask(() => {
      this.changed = false;
      if (!this.isConnected) return;
      this.#unbuild();
      this.#build();
    });
  }

  #build() {
    const page = this.closest("[lang]")?.lang || document.documentElement.lang;
    const language = known([this.lang, page, ...navigator.languages]);
    const words = wordsIn(language);
    this.life = new AbortController();
    this.conversation = this.#conversation(language);
    const close = this.inline ? null : () => this.close();
    this.panel = new Panel(this.conversation, { words, options: this.#options(), close });
    this.box = this.inline ? this.#section() : this.#dialog();
    this.box.append(...this.panel.parts);
    const outer = { lang: language, dir: this.getAttribute("dir") || directionOf(language) };
    this.launcher = this.inline ? null : this.#launcher(words);
    // What is clicked outside of fields and buttons keeps focus here, so that Escape works.
    const focusable = { class: "outer", tabindex: "-1", onkeydown: (event) => this.#escape(event) };
    this.root.replaceChildren(make("div", { ...outer, ...focusable }, this.box, this.launcher));
    this.#listen();
    this.conversation.restore();
    if (!this.inline && this.hasAttribute("open")) this.#show({ focus: false });
  }

  #unbuild() {
    this.life?.abort();
    this.panel?.close();
    this.conversation?.close();
    this.panel = null;
  }

  #conversation(language) {
    const attribute = (name) => this.getAttribute(name) ?? "";
    const url = this.#server();
    const key = attribute("key");
    const assistant = attribute("assistant");
    const desk = new Desk({ url, key, assistant, language, person: this.person });
    // A key's id, not its secret half, names what is kept; each person has a conversation.
    const who = attribute("person");
    const name = [desk.url, key.split("_")[2] ?? "", assistant, ...(who ? [who] : [])].join("|");
    return new Conversation(desk, new Keeping(name, { lasting: attribute("remember") !== "tab" }));
  }

  #server() {
    // The script is at /widget/ of its server, which may itself be below a path.
    const at = SCRIPT?.src.lastIndexOf("/widget/refdesk") ?? -1;
    const origin = SCRIPT ? new URL(SCRIPT.src).origin : location.origin;
    return this.getAttribute("desk") || (at < 0 ? origin : SCRIPT.src.slice(0, at));
  }

  #options() {
    const attribute = (name) => this.getAttribute(name) ?? "";
    const questions = attribute("questions").split("|").map((text) => text.trim()).filter(Boolean);
    return {
      heading: attribute("heading"),
      greeting: attribute("greeting"),
      placeholder: attribute("placeholder"),
      disclaimer: attribute("disclaimer"),
      template: attribute("source-url"),
      server: new URL(this.#server(), location.href).origin,
      questions,
    };
  }

  #section() {
    return make("section", { class: "panel", "aria-labelledby": "title" });
  }

  #dialog() {
    const dialog = make("dialog", { class: "panel", id: "panel", "aria-labelledby": "title" });
    dialog.addEventListener("cancel", (event) => {
      event.preventDefault();
      if (!this.panel.back()) this.close();
    });
    return dialog;
  }

  /** Close what was opened last; a key that closes nothing is the page's. */
  #escape(event) {
    if (event.key !== "Escape" || event.isComposing) return;
    const open = this.inline || this.box.open;
    const closed = open && this.panel.back();
    if (!closed && (this.inline || !open)) return;
    event.preventDefault();
    event.stopPropagation();
    if (!closed) this.close();
  }

  #launcher(words) {
    const label = this.getAttribute("label") || words.ask;
    const attributes = { type: "button", class: "launcher", "aria-haspopup": "dialog", "aria-expanded": "false" };
    const onclick = () => (this.box.open ? this.close() : this.open());
    return make("button", { ...attributes, "aria-controls": "panel", onclick }, icon("ask"), make("span", {}, label));
  }

  #listen() {
    const { signal } = this.life;
    const small = matchMedia(SMALL);
    small.addEventListener("change", () => this.box.open && this.#place(small.matches), { signal });
    this.conversation.addEventListener("ended", ({ detail: { id, answer } }) => {
      if (this.launcher && !this.box.open) this.launcher.classList.add("news");
      const detail = { message_id: id, outcome: answer.outcome };
      this.dispatchEvent(new CustomEvent("refdesk-answer", { detail, bubbles: true }));
    });
    // Where a keyboard covers the page, the panel ends above it.
    window.visualViewport?.addEventListener(
      "resize",
      () => this.box.style.setProperty("--seen-height", `${window.visualViewport.height}px`),
      { signal },
    );
  }

  #show({ focus = true } = {}) {
    if (this.inline || this.box.open) return;
    const at = document.activeElement;
    this.from = at === document.body || at === this ? null : at;
    this.#place(matchMedia(SMALL).matches);
    this.launcher.setAttribute("aria-expanded", "true");
    this.launcher.classList.remove("news");
    this.panel.following = true;
    if (focus) this.panel.focus();
    this.dispatchEvent(new CustomEvent("refdesk-open", { bubbles: true }));
  }

  /** Put the panel over the whole of a small page, and beside a large one. */
  #place(small) {
    if (this.box.open) this.box.close();
    this.box.classList.toggle("full", small);
    if (small) this.box.showModal();
    else this.box.show();
  }

  #shut() {
    if (this.inline || !this.box.open) return;
    const at = document.activeElement;
    const here = at === this || at === document.body;
    this.box.close();
    this.launcher.setAttribute("aria-expanded", "false");
    // Back to where it was opened, but never away from where somebody writes on the page.
    if (here) (this.from?.isConnected ? this.from : this.launcher).focus();
    this.dispatchEvent(new CustomEvent("refdesk-close", { bubbles: true }));
  }
}

/** Make a launcher as the script tag says: `data-key`, `data-heading` and so on. */
function launch(script) {
  const widget = document.createElement(NAME);
  for (const { name, value } of script.attributes) {
    if (name.startsWith("data-")) widget.setAttribute(name.slice(5), value);
  }
  document.body.append(widget);
}

if (!customElements.get(NAME)) customElements.define(NAME, RefdeskWidget);
if (SCRIPT && [...SCRIPT.attributes].some(({ name }) => name.startsWith("data-"))) {
  if (document.body) launch(SCRIPT);
  else addEventListener("DOMContentLoaded", () => launch(SCRIPT), { once: true });
}
