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

for (const listing of document.querySelectorAll("pre[data-file]")) {
  fetch(listing.dataset.file)
    .then((answer) => (answer.ok ? answer.text() : "This could not be loaded. Load the page again in a moment."))
    .then((text) => { listing.textContent = text; });
}

// fillMenu lists every operation by its tag, under the ids that the viewer gives.
function fillMenu(spec) {
  const menu = document.getElementById("where");
  const groups = new Map(spec.tags.map((tag) => {
    const group = document.createElement("optgroup");
    group.label = tag.name;
    return [tag.name, group];
  }));
  menu.append(new Option("Quickstart and introduction", "overview"), ...groups.values());
  for (const [prefix, paths] of [["", spec.paths], ["webhook-", spec["x-webhooks"]]]) {
    for (const [path, item] of Object.entries(paths)) {
      for (const [method, operation] of Object.entries(item)) {
        if (!operation.tags) continue;
        const words = prefix ? path : operation.summary;
        groups.get(operation.tags[0]).append(new Option(words, `${method}-${path.replace(/[\s#:?&={}]/g, "-")}`));
      }
    }
  }
  menu.addEventListener("change", () => viewer.scrollToPath(menu.value));
}

Promise.all([
  fetch("v1/openapi.json").then((answer) => (answer.ok ? answer.json() : Promise.reject(new Error(answer.statusText)))),
  customElements.whenDefined("rapi-doc"),
])
  .then(([spec]) => {
    fillMenu(spec);
    leaveOptionalFieldsEmpty([spec.paths, spec.components.parameters]);
    // The viewer writes the licence over the page's edge; it stays in the document.
    return viewer.loadSpec({ ...spec, info: { ...spec.info, license: undefined }, webhooks: spec["x-webhooks"] });
  })
  .catch(() => {
    viewer.replaceWith("The OpenAPI document could not be loaded. Load the page again in a moment.");
  });
