// The document is OpenAPI 3.0, which has no place for webhooks but an extension.
// The viewer draws them where 3.1 has them.
//
// The viewer also fills every field with its example, so that bodies show theirs.
// What is optional stays empty instead: a filter, or a key that makes a second
// request a repeat, is not to be sent by accident. Its example goes into the words.
const viewer = document.querySelector("rapi-doc");

function leaveOptionalFieldsEmpty(node) {
  if (node === null || typeof node !== "object") return;
  if (node.name && node.in && !node.required && node.example !== undefined) {
    node.description = `${node.description} For example \`${node.example}\`.`;
    delete node.example;
  }
  Object.values(node).forEach(leaveOptionalFieldsEmpty);
}

// On a narrow screen the viewer's table of fields has no column for their words.
if (matchMedia("(max-width: 560px)").matches) viewer.setAttribute("default-schema-tab", "example");

Promise.all([
  fetch("v1/openapi.json").then((answer) => (answer.ok ? answer.json() : Promise.reject(new Error(answer.statusText)))),
  customElements.whenDefined("rapi-doc"),
])
  .then(([spec]) => {
    leaveOptionalFieldsEmpty([spec.paths, spec.components.parameters]);
    return viewer.loadSpec({ ...spec, webhooks: spec["x-webhooks"] });
  })
  .catch(() => {
    viewer.replaceWith("The OpenAPI document could not be loaded. Load the page again in a moment.");
  });
