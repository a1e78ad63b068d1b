// The page that shows the widget: lets its looks be tried, and tells the tag to embed it.

const widget = document.querySelector("refdesk-widget");
const key = new URLSearchParams(location.hash.slice(1)).get("key");
const main = document.querySelector("main");
if (key !== null && /^refdesk_public_[\w-]+$/.test(key)) {
  widget.setAttribute("key", key);
  main.dataset.state = "ready";
}
document.querySelector(".origin").textContent = location.origin;

document.querySelector("form.notice").addEventListener("submit", (event) => {
  event.preventDefault();
  // The fragment of an address is not sent to the server, so the key is in no log.
  location.hash = `key=${event.target.elements.key.value}`;
  location.reload();
});

const tag = document.querySelector("#tag");
const lines = [
  `<script src="${location.origin}${tag.dataset.address}"`,
  `  integrity="${tag.dataset.integrity}"`,
  `  crossorigin="anonymous" defer`,
  `  data-key="${widget.getAttribute("key") ?? "refdesk_public_..."}"></` + `script>`,
];
tag.textContent = lines.join("\n");

document.querySelector(".settings").addEventListener("change", ({ target }) => {
  if (target.value) widget.setAttribute(target.name, target.value);
  else widget.removeAttribute(target.name);
});
