const dark = matchMedia("(prefers-color-scheme: dark)");
const followScheme = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
followScheme();
dark.addEventListener("change", followScheme);

// No validator and no address of others: the page works without a network.
SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#api",
  // A link in the button of each operation would be unreachable for assistive technology.
  deepLinking: false,
  docExpansion: "list",
  defaultModelsExpandDepth: 0,
  persistAuthorization: false,
  validatorUrl: null,
  onComplete: () => {
    const about = document.querySelector(".information-container");
    about.setAttribute("role", "region");
    about.setAttribute("aria-label", "About this interface");
    for (const title of document.querySelectorAll(".opblock-tag, .models h4")) {
      title.setAttribute("aria-level", "2");
    }
  },
});
