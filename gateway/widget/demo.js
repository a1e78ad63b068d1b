// The page that shows the widget: lets its looks be tried, and tells the tag to embed it.

const widget = document.querySelector("refdesk-widget");
const key = new URLSearchParams(location.hash.slice(1)).get("key");
if (key !== null && /^refdesk_public_[\w-]+$/.test(key)) widget.setAttribute("key", key);

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
