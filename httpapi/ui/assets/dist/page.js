// src/entries.ts
function entries() {
  for (const list of document.querySelectorAll("[data-rows]")) {
    for (const entry of entriesOf(list)) tools(list, entry);
    list.addEventListener("keydown", (event) => keys(list, event));
    list.addEventListener("dragover", (event) => {
      const dragged = list.querySelector(".dragged");
      const over = event.target.closest(".entry");
      if (dragged === null || over === null || over === dragged) return;
      event.preventDefault();
      const box = over.getBoundingClientRect();
      over[event.clientY > box.top + box.height / 2 ? "after" : "before"](dragged);
    });
  }
}
var entriesOf = (list) => [...list.querySelectorAll(".entry")];
function keys(list, event) {
  const field = event.target;
  const entry = field instanceof Element ? field.closest(".entry") : null;
  if (entry === null || !(field instanceof HTMLTextAreaElement)) return;
  const all = entriesOf(list);
  const at = all.indexOf(entry);
  if (event.key === "Enter" && !event.isComposing) {
    event.preventDefault();
    item(all[at + 1] ?? added(list, entry)).focus();
  } else if (event.altKey && (event.key === "ArrowUp" || event.key === "ArrowDown")) {
    event.preventDefault();
    if (event.key === "ArrowUp") all[at - 1]?.before(entry);
    else all[at + 1]?.after(entry);
    field.focus();
    changed(entry);
  }
}
var item = (entry) => entry.querySelector('[name="item"]');
var changed = (entry) => entry.dispatchEvent(new Event("input", { bubbles: true }));
var count = 0;
function added(list, like) {
  const entry = like.cloneNode(true);
  entry.querySelector(".entry-tools")?.remove();
  count++;
  for (const field of entry.querySelectorAll("textarea, select")) {
    if (field instanceof HTMLTextAreaElement) field.value = "";
    const label = entry.querySelector(`label[for="${field.id}"]`);
    field.id = `added-${count}-${field.id}`;
    if (label !== null) label.htmlFor = field.id;
  }
  list.append(entry);
  tools(list, entry);
  return entry;
}
function tools(list, entry) {
  const bar = document.createElement("div");
  bar.className = "entry-tools";
  const grip = button("entry-grip", "⋮⋮", "Move this item with the mouse, or with Alt and an arrow");
  grip.addEventListener("pointerdown", () => {
    entry.draggable = true;
  });
  grip.addEventListener("pointerup", () => {
    entry.draggable = false;
  });
  grip.addEventListener("keydown", (event) => {
    if (event.key !== "ArrowUp" && event.key !== "ArrowDown") return;
    event.preventDefault();
    const other = event.key === "ArrowUp" ? entry.previousElementSibling : entry.nextElementSibling;
    other?.[event.key === "ArrowUp" ? "before" : "after"](entry);
    grip.focus();
    changed(entry);
  });
  const drop = button("entry-drop", "×", "Take this item out");
  drop.addEventListener("click", () => {
    const next = entry.nextElementSibling ?? entry.previousElementSibling;
    if (next === null) item(entry).value = "";
    else entry.remove();
    item(next ?? entry).focus();
    changed(next ?? entry);
  });
  entry.addEventListener("dragstart", () => entry.classList.add("dragged"));
  entry.addEventListener("dragend", () => {
    entry.classList.remove("dragged");
    entry.draggable = false;
    changed(entry);
  });
  bar.append(grip, drop);
  entry.append(bar);
}
function button(kind, text, says) {
  const made = document.createElement("button");
  made.type = "button";
  made.className = kind;
  made.textContent = text;
  made.setAttribute("aria-label", says);
  made.title = says;
  return made;
}

// vendor/idiomorph/idiomorph.esm.js
var Idiomorph = (function() {
  "use strict";
  const noOp = () => {
  };
  const defaults = {
    morphStyle: "outerHTML",
    callbacks: {
      beforeNodeAdded: noOp,
      afterNodeAdded: noOp,
      beforeNodeMorphed: noOp,
      afterNodeMorphed: noOp,
      beforeNodeRemoved: noOp,
      afterNodeRemoved: noOp,
      beforeAttributeUpdated: noOp
    },
    head: {
      style: "merge",
      shouldPreserve: (elt) => elt.getAttribute("im-preserve") === "true",
      shouldReAppend: (elt) => elt.getAttribute("im-re-append") === "true",
      shouldRemove: noOp,
      afterHeadMorphed: noOp
    },
    restoreFocus: true
  };
  function morph(oldNode, newContent, config = {}) {
    const oldElt = normalizeElement(oldNode);
    const newNode = normalizeParent(newContent);
    const ctx = createMorphContext(oldElt, newNode, config);
    return withHeadBlocking(
      ctx,
      oldElt,
      newNode,
      /** @param {MorphContext} ctx */
      (ctx2) => {
        const morphedNodes = saveAndRestoreFocus(ctx2, () => {
          if (ctx2.morphStyle === "innerHTML") {
            morphChildren(ctx2, oldElt, newNode);
            return Array.from(oldElt.childNodes);
          } else {
            return morphOuterHTML(ctx2, oldElt, newNode);
          }
        });
        ctx2.pantry.remove();
        return morphedNodes;
      }
    );
  }
  function morphOuterHTML(ctx, oldNode, newNode) {
    const oldParent = normalizeParent(oldNode);
    morphChildren(
      ctx,
      oldParent,
      newNode,
      // these two optional params are the secret sauce
      oldNode,
      // start point for iteration
      oldNode.nextSibling
      // end point for iteration
    );
    return Array.from(oldParent.childNodes);
  }
  function saveAndRestoreFocus(ctx, fn) {
    if (!ctx.config.restoreFocus) return fn();
    let activeElement = (
      /** @type {HTMLInputElement|HTMLTextAreaElement|null} */
      ctx.doc.activeElement
    );
    if (!(is.inputElement(activeElement) || is.textAreaElement(activeElement))) {
      return fn();
    }
    const { id: activeElementId, selectionStart, selectionEnd } = activeElement;
    const results = fn();
    if (activeElementId && activeElementId !== ctx.doc.activeElement?.getAttribute("id")) {
      activeElement = ctx.target.querySelector(
        `[id="${CSS.escape(activeElementId)}"]`
      );
      activeElement?.focus();
    }
    if (activeElement && !activeElement.selectionEnd && selectionEnd) {
      try {
        activeElement.setSelectionRange(selectionStart, selectionEnd);
      } catch {
      }
    }
    return results;
  }
  const morphChildren = /* @__PURE__ */ (function() {
    function morphChildren2(ctx, oldParent, newParent, insertionPoint = null, endPoint = null) {
      if (is.templateElement(oldParent) && is.templateElement(newParent)) {
        oldParent = oldParent.content;
        newParent = newParent.content;
      }
      insertionPoint ||= oldParent.firstChild;
      for (const newChild of newParent.childNodes) {
        if (insertionPoint && insertionPoint != endPoint) {
          const bestMatch = findBestMatch(
            ctx,
            newChild,
            insertionPoint,
            endPoint
          );
          if (bestMatch) {
            if (bestMatch !== insertionPoint) {
              removeNodesBetween(ctx, insertionPoint, bestMatch);
            }
            morphNode(bestMatch, newChild, ctx);
            insertionPoint = bestMatch.nextSibling;
            continue;
          }
        }
        if (is.element(newChild)) {
          const newChildId = (
            /** @type {String} */
            newChild.getAttribute("id")
          );
          if (ctx.persistentIds.has(newChildId)) {
            const movedChild = moveBeforeById(
              oldParent,
              newChildId,
              insertionPoint,
              ctx
            );
            morphNode(movedChild, newChild, ctx);
            insertionPoint = movedChild.nextSibling;
            continue;
          }
        }
        const insertedNode = createNode(
          oldParent,
          newChild,
          insertionPoint,
          ctx
        );
        if (insertedNode) {
          insertionPoint = insertedNode.nextSibling;
        }
      }
      while (insertionPoint && insertionPoint != endPoint) {
        const tempNode = insertionPoint;
        insertionPoint = insertionPoint.nextSibling;
        removeNode(ctx, tempNode);
      }
    }
    function createNode(oldParent, newChild, insertionPoint, ctx) {
      if (ctx.callbacks.beforeNodeAdded(newChild) === false) return null;
      if (ctx.idMap.has(newChild)) {
        const newEmptyChild = ctx.doc.createElementNS(
          /** @type {Element} */
          newChild.namespaceURI,
          /** @type {Element} */
          newChild.localName
        );
        oldParent.insertBefore(newEmptyChild, insertionPoint);
        morphNode(newEmptyChild, newChild, ctx);
        ctx.callbacks.afterNodeAdded(newEmptyChild);
        return newEmptyChild;
      } else {
        const newClonedChild = ctx.doc.importNode(newChild, true);
        oldParent.insertBefore(newClonedChild, insertionPoint);
        ctx.callbacks.afterNodeAdded(newClonedChild);
        return newClonedChild;
      }
    }
    const findBestMatch = /* @__PURE__ */ (function() {
      function findBestMatch2(ctx, node, startPoint, endPoint) {
        let softMatch = null;
        let nextSibling = node.nextSibling;
        let siblingSoftMatchCount = 0;
        let cursor2 = startPoint;
        while (cursor2 && cursor2 != endPoint) {
          if (isSoftMatch(cursor2, node)) {
            if (isIdSetMatch(ctx, cursor2, node)) {
              return cursor2;
            }
            if (softMatch === null) {
              if (!ctx.idMap.has(cursor2)) {
                softMatch = cursor2;
              }
            }
          }
          if (softMatch === null && nextSibling && isSoftMatch(cursor2, nextSibling)) {
            siblingSoftMatchCount++;
            nextSibling = nextSibling.nextSibling;
            if (siblingSoftMatchCount >= 2) {
              softMatch = void 0;
            }
          }
          if (ctx.activeElementAndParents.includes(cursor2)) break;
          cursor2 = cursor2.nextSibling;
        }
        return softMatch || null;
      }
      function isIdSetMatch(ctx, oldNode, newNode) {
        let oldSet = ctx.idMap.get(oldNode);
        let newSet = ctx.idMap.get(newNode);
        if (!newSet || !oldSet) return false;
        for (const id of oldSet) {
          if (newSet.has(id)) {
            return true;
          }
        }
        return false;
      }
      function isSoftMatch(oldNode, newNode) {
        const oldElt = (
          /** @type {Element} */
          oldNode
        );
        const newElt = (
          /** @type {Element} */
          newNode
        );
        return oldElt.nodeType === newElt.nodeType && oldElt.tagName === newElt.tagName && // If oldElt has an `id` with possible state and it doesn't match newElt.id then avoid morphing.
        // We'll still match an anonymous node with an IDed newElt, though, because if it got this far,
        // its not persistent, and new nodes can't have any hidden state.
        // We can't use .id because of form input shadowing, and we can't count on .getAttribute's presence because it could be a document-fragment
        (!oldElt.getAttribute?.("id") || oldElt.getAttribute?.("id") === newElt.getAttribute?.("id"));
      }
      return findBestMatch2;
    })();
    function removeNode(ctx, node) {
      if (node === ctx.pantry) return;
      if (ctx.idMap.has(node)) {
        moveBefore(ctx.pantry, node, null);
      } else {
        if (ctx.callbacks.beforeNodeRemoved(node) === false) return;
        node.parentNode?.removeChild(node);
        ctx.callbacks.afterNodeRemoved(node);
      }
    }
    function removeNodesBetween(ctx, startInclusive, endExclusive) {
      let cursor2 = startInclusive;
      while (cursor2 && cursor2 !== endExclusive) {
        let tempNode = (
          /** @type {Node} */
          cursor2
        );
        cursor2 = cursor2.nextSibling;
        removeNode(ctx, tempNode);
      }
      return cursor2;
    }
    function moveBeforeById(parentNode, id, after, ctx) {
      const selector = `[id="${CSS.escape(id)}"]`;
      const target = (
        /** @type {Element} - will always be found */
        // ctx.target.id unsafe because of form input shadowing
        // ctx.target could be a document fragment which doesn't have `getAttribute`
        ctx.target.getAttribute?.("id") === id && ctx.target || ctx.target.querySelector(selector) || ctx.pantry.querySelector(selector)
      );
      removeElementFromAncestorsIdMaps(target, ctx);
      moveBefore(parentNode, target, after);
      return target;
    }
    function removeElementFromAncestorsIdMaps(element, ctx) {
      const id = (
        /** @type {String} */
        element.getAttribute("id")
      );
      while (element = element.parentNode) {
        let idSet = ctx.idMap.get(element);
        if (idSet) {
          idSet.delete(id);
          if (!idSet.size) {
            ctx.idMap.delete(element);
          }
        }
      }
    }
    function moveBefore(parentNode, element, after) {
      if (parentNode.moveBefore) {
        try {
          parentNode.moveBefore(element, after);
        } catch (e) {
          parentNode.insertBefore(element, after);
        }
      } else {
        parentNode.insertBefore(element, after);
      }
    }
    return morphChildren2;
  })();
  const morphNode = /* @__PURE__ */ (function() {
    function morphNode2(oldNode, newContent, ctx) {
      if (ctx.ignoreActive && oldNode === ctx.doc.activeElement) {
        return null;
      }
      if (ctx.callbacks.beforeNodeMorphed(oldNode, newContent) === false) {
        return oldNode;
      }
      if (is.headElement(oldNode) && ctx.head.style === "none") {
      } else if (is.headElement(oldNode) && ctx.head.style !== "morph") {
        handleHeadElement(
          oldNode,
          /** @type {HTMLHeadElement} */
          newContent,
          ctx
        );
      } else {
        morphAttributes(oldNode, newContent, ctx);
        if (!ignoreValueOfActiveElement(oldNode, ctx)) {
          morphChildren(ctx, oldNode, newContent);
        }
      }
      ctx.callbacks.afterNodeMorphed(oldNode, newContent);
      return oldNode;
    }
    function morphAttributes(oldNode, newNode, ctx) {
      let type = newNode.nodeType;
      if (type === 1) {
        const oldElt = (
          /** @type {Element} */
          oldNode
        );
        const newElt = (
          /** @type {Element} */
          newNode
        );
        const oldAttributes = oldElt.attributes;
        const newAttributes = newElt.attributes;
        for (const newAttribute of newAttributes) {
          if (oldElt.getAttribute(newAttribute.name) === newAttribute.value) {
            continue;
          }
          if (ignoreAttribute(newAttribute.name, oldElt, "update", ctx)) {
            continue;
          }
          oldElt.setAttributeNode(
            /** @type {Attr} */
            newAttribute.cloneNode()
          );
        }
        for (let i = oldAttributes.length - 1; 0 <= i; i--) {
          const oldAttribute = oldAttributes[i];
          if (!oldAttribute) continue;
          if (!newElt.hasAttribute(oldAttribute.name)) {
            if (ignoreAttribute(oldAttribute.name, oldElt, "remove", ctx)) {
              continue;
            }
            oldElt.removeAttribute(oldAttribute.name);
          }
        }
        if (!ignoreValueOfActiveElement(oldElt, ctx)) {
          syncInputValue(oldElt, newElt, ctx);
        }
      }
      if (type === 8 || type === 3) {
        if (oldNode.nodeValue !== newNode.nodeValue) {
          oldNode.nodeValue = newNode.nodeValue;
        }
      }
    }
    function syncInputValue(oldElement, newElement, ctx) {
      if (is.inputElement(oldElement) && is.inputElement(newElement) && newElement.type !== "file") {
        let newValue = newElement.value;
        let oldValue = oldElement.value;
        syncBooleanAttribute(oldElement, newElement, "checked", ctx);
        syncBooleanAttribute(oldElement, newElement, "disabled", ctx);
        if (!newElement.hasAttribute("value")) {
          if (!ignoreAttribute("value", oldElement, "remove", ctx)) {
            oldElement.value = "";
            oldElement.removeAttribute("value");
          }
        } else if (oldValue !== newValue) {
          if (!ignoreAttribute("value", oldElement, "update", ctx)) {
            oldElement.setAttribute("value", newValue);
            oldElement.value = newValue;
          }
        }
      } else if (is.optionElement(oldElement) && is.optionElement(newElement)) {
        syncBooleanAttribute(oldElement, newElement, "selected", ctx);
      } else if (is.textAreaElement(oldElement) && is.textAreaElement(newElement)) {
        let newValue = newElement.value;
        let oldValue = oldElement.value;
        if (ignoreAttribute("value", oldElement, "update", ctx)) {
          return;
        }
        if (newValue !== oldValue) {
          oldElement.value = newValue;
        }
        if (oldElement.firstChild && oldElement.firstChild.nodeValue !== newValue) {
          oldElement.firstChild.nodeValue = newValue;
        }
      }
    }
    function syncBooleanAttribute(oldElement, newElement, attributeName, ctx) {
      const newLiveValue = newElement[attributeName], oldLiveValue = oldElement[attributeName];
      if (newLiveValue !== oldLiveValue) {
        const ignoreUpdate = ignoreAttribute(
          attributeName,
          oldElement,
          "update",
          ctx
        );
        if (!ignoreUpdate) {
          oldElement[attributeName] = newElement[attributeName];
        }
        if (newLiveValue) {
          if (!ignoreUpdate) {
            oldElement.setAttribute(attributeName, "");
          }
        } else {
          if (!ignoreAttribute(attributeName, oldElement, "remove", ctx)) {
            oldElement.removeAttribute(attributeName);
          }
        }
      }
    }
    function ignoreAttribute(attr, element, updateType, ctx) {
      if (attr === "value" && ctx.ignoreActiveValue && element === ctx.doc.activeElement) {
        return true;
      }
      return ctx.callbacks.beforeAttributeUpdated(attr, element, updateType) === false;
    }
    function ignoreValueOfActiveElement(possibleActiveElement, ctx) {
      return !!ctx.ignoreActiveValue && possibleActiveElement === ctx.doc.activeElement && possibleActiveElement !== ctx.doc.body;
    }
    return morphNode2;
  })();
  function withHeadBlocking(ctx, oldNode, newNode, callback) {
    if (ctx.head.block && ctx.head.style !== "none") {
      const oldHead = oldNode.querySelector("head");
      const newHead = newNode.querySelector("head");
      if (oldHead && newHead) {
        const promises = handleHeadElement(oldHead, newHead, ctx);
        return Promise.all(promises).then(() => {
          const newCtx = Object.assign(ctx, {
            head: {
              block: false,
              style: "none"
            }
          });
          return callback(newCtx);
        });
      }
    }
    return callback(ctx);
  }
  function handleHeadElement(oldHead, newHead, ctx) {
    let added2 = [];
    let removed = [];
    let preserved = [];
    let nodesToAppend = [];
    let srcToNewHeadNodes = /* @__PURE__ */ new Map();
    for (const newHeadChild of newHead.children) {
      srcToNewHeadNodes.set(newHeadChild.outerHTML, newHeadChild);
    }
    for (const currentHeadElt of oldHead.children) {
      let inNewContent = srcToNewHeadNodes.has(currentHeadElt.outerHTML);
      let isReAppended = ctx.head.shouldReAppend(currentHeadElt);
      let isPreserved = ctx.head.shouldPreserve(currentHeadElt);
      if (inNewContent || isPreserved) {
        if (isReAppended) {
          removed.push(currentHeadElt);
        } else {
          srcToNewHeadNodes.delete(currentHeadElt.outerHTML);
          preserved.push(currentHeadElt);
        }
      } else {
        if (ctx.head.style === "append") {
          if (isReAppended) {
            removed.push(currentHeadElt);
            nodesToAppend.push(currentHeadElt);
          }
        } else {
          if (ctx.head.shouldRemove(currentHeadElt) !== false) {
            removed.push(currentHeadElt);
          }
        }
      }
    }
    nodesToAppend.push(...srcToNewHeadNodes.values());
    let promises = [];
    for (const newNode of nodesToAppend) {
      let newElt = (
        /** @type {ChildNode} */
        ctx.doc.createRange().createContextualFragment(newNode.outerHTML).firstChild
      );
      if (ctx.callbacks.beforeNodeAdded(newElt) !== false) {
        if ("href" in newElt && newElt.href || "src" in newElt && newElt.src) {
          let resolve;
          let promise = new Promise(function(_resolve) {
            resolve = _resolve;
          });
          newElt.addEventListener("load", function() {
            resolve();
          });
          promises.push(promise);
        }
        oldHead.appendChild(newElt);
        ctx.callbacks.afterNodeAdded(newElt);
        added2.push(newElt);
      }
    }
    for (const removedElement of removed) {
      if (ctx.callbacks.beforeNodeRemoved(removedElement) !== false) {
        oldHead.removeChild(removedElement);
        ctx.callbacks.afterNodeRemoved(removedElement);
      }
    }
    ctx.head.afterHeadMorphed(oldHead, {
      added: added2,
      kept: preserved,
      removed
    });
    return promises;
  }
  const createMorphContext = /* @__PURE__ */ (function() {
    function createMorphContext2(oldNode, newContent, config) {
      const { persistentIds, idMap } = createIdMaps(oldNode, newContent);
      const mergedConfig = mergeDefaults(config);
      const morphStyle = mergedConfig.morphStyle || "outerHTML";
      if (!["innerHTML", "outerHTML"].includes(morphStyle)) {
        throw `Do not understand how to morph style ${morphStyle}`;
      }
      if (morphStyle === "innerHTML" && !oldNode.append) {
        throw `Cannot morph the innerHTML of a ${oldNode.nodeName} node, as it cannot have children`;
      }
      const headStyle = mergedConfig.head.style || "merge";
      if (!["merge", "append", "morph", "none"].includes(headStyle)) {
        throw `Do not understand how to morph head style ${headStyle}`;
      }
      const doc = oldNode.ownerDocument;
      return {
        target: oldNode,
        newContent,
        doc,
        config: mergedConfig,
        morphStyle,
        ignoreActive: mergedConfig.ignoreActive,
        ignoreActiveValue: mergedConfig.ignoreActiveValue,
        restoreFocus: mergedConfig.restoreFocus,
        idMap,
        persistentIds,
        pantry: createPantry(doc),
        activeElementAndParents: createActiveElementAndParents(oldNode, doc),
        callbacks: mergedConfig.callbacks,
        head: mergedConfig.head
      };
    }
    function mergeDefaults(config) {
      let finalConfig = Object.assign({}, defaults);
      Object.assign(finalConfig, config);
      finalConfig.callbacks = Object.assign(
        {},
        defaults.callbacks,
        config.callbacks
      );
      finalConfig.head = Object.assign({}, defaults.head, config.head);
      return finalConfig;
    }
    function createPantry(doc) {
      const pantry = doc.createElement("div");
      pantry.hidden = true;
      doc.documentElement.append(pantry);
      return pantry;
    }
    function createActiveElementAndParents(oldNode, doc) {
      let activeElementAndParents = [];
      let elt = doc.activeElement;
      if (elt?.tagName !== "BODY" && oldNode.contains(elt)) {
        while (elt) {
          activeElementAndParents.push(elt);
          if (elt === oldNode) break;
          elt = elt.parentElement;
        }
      }
      return activeElementAndParents;
    }
    function findIdElements(root) {
      let elements = [];
      const rootElt = (
        /** @type {Partial<Element>} */
        root
      );
      for (const elt of rootElt.querySelectorAll?.("[id]") ?? []) {
        const id = elt.getAttribute("id");
        if (id) elements.push({ elt, id });
      }
      const rootId = rootElt.getAttribute?.("id");
      if (rootId)
        elements.push({ elt: (
          /** @type {Element} */
          root
        ), id: rootId });
      return elements;
    }
    function populateIdMapWithTree(idMap, persistentIds, root, elements) {
      for (const { elt, id } of elements) {
        if (persistentIds.has(id)) {
          let current = elt;
          while (current) {
            let idSet = idMap.get(current);
            if (idSet == null) {
              idSet = /* @__PURE__ */ new Set();
              idMap.set(current, idSet);
            }
            idSet.add(id);
            if (current === root) break;
            current = current.parentElement;
          }
        }
      }
    }
    function createIdMaps(oldContent, newContent) {
      const oldIdElements = findIdElements(oldContent);
      const newIdElements = findIdElements(newContent);
      const persistentIds = createPersistentIds(oldIdElements, newIdElements);
      let idMap = /* @__PURE__ */ new Map();
      populateIdMapWithTree(idMap, persistentIds, oldContent, oldIdElements);
      const newRoot = newContent.__idiomorphRoot || newContent;
      populateIdMapWithTree(idMap, persistentIds, newRoot, newIdElements);
      return { persistentIds, idMap };
    }
    function createPersistentIds(oldIdElements, newIdElements) {
      let duplicateIds = /* @__PURE__ */ new Set();
      let oldIdTagNameMap = /* @__PURE__ */ new Map();
      for (const { elt, id } of oldIdElements) {
        if (oldIdTagNameMap.has(id)) {
          duplicateIds.add(id);
        } else {
          oldIdTagNameMap.set(id, elt.tagName);
        }
      }
      let persistentIds = /* @__PURE__ */ new Set();
      for (const { elt, id } of newIdElements) {
        if (persistentIds.has(id)) {
          duplicateIds.add(id);
        } else if (oldIdTagNameMap.get(id) === elt.tagName) {
          persistentIds.add(id);
        }
      }
      for (const id of duplicateIds) {
        persistentIds.delete(id);
      }
      if (duplicateIds.size) {
        console.warn(
          "[Warning] duplicate ids found during morph, state loss within these elements is possible:",
          Array.from(duplicateIds)
        );
      }
      return persistentIds;
    }
    return createMorphContext2;
  })();
  const { normalizeElement, normalizeParent } = /* @__PURE__ */ (function() {
    const generatedByIdiomorph = /* @__PURE__ */ new WeakSet();
    function normalizeElement2(content) {
      if (is.document(content)) {
        return content.documentElement;
      } else {
        return (
          /** @type {Element} */
          content
        );
      }
    }
    function normalizeParent2(newContent) {
      if (newContent == null) {
        return document.createElement("div");
      } else if (typeof newContent === "string") {
        return normalizeParent2(parseContent(newContent));
      } else if (generatedByIdiomorph.has(
        /** @type {Element} */
        newContent
      )) {
        return (
          /** @type {Element} */
          newContent
        );
      } else if (is.node(newContent)) {
        if (newContent.parentNode) {
          return (
            /** @type {any} */
            new SlicedParentNode(newContent)
          );
        } else {
          const dummyParent = document.createElement("div");
          dummyParent.append(newContent);
          return dummyParent;
        }
      } else {
        const dummyParent = document.createElement("div");
        for (const elt of [...newContent]) {
          dummyParent.append(elt);
        }
        return dummyParent;
      }
    }
    class SlicedParentNode {
      /** @param {Node} node */
      constructor(node) {
        this.originalNode = node;
        this.realParentNode = /** @type {Element} */
        node.parentNode;
        this.previousSibling = node.previousSibling;
        this.nextSibling = node.nextSibling;
      }
      /** @returns {Node[]} */
      get childNodes() {
        const nodes = [];
        let cursor2 = this.previousSibling ? this.previousSibling.nextSibling : this.realParentNode.firstChild;
        while (cursor2 && cursor2 != this.nextSibling) {
          nodes.push(cursor2);
          cursor2 = cursor2.nextSibling;
        }
        return nodes;
      }
      /**
       * @param {string} selector
       * @returns {Element[]}
       */
      querySelectorAll(selector) {
        return this.childNodes.reduce(
          (results, node) => {
            if (is.element(node)) {
              if (node.matches(selector)) results.push(node);
              const nodeList = node.querySelectorAll(selector);
              for (let i = 0; i < nodeList.length; i++) {
                results.push(nodeList[i]);
              }
            }
            return results;
          },
          /** @type {Element[]} */
          []
        );
      }
      /**
       * @param {Node} node
       * @param {Node} referenceNode
       * @returns {Node}
       */
      insertBefore(node, referenceNode) {
        return this.realParentNode.insertBefore(node, referenceNode);
      }
      /**
       * @param {Node} node
       * @param {Node} referenceNode
       * @returns {Node}
       */
      moveBefore(node, referenceNode) {
        return this.realParentNode.moveBefore(node, referenceNode);
      }
      /**
       * for later use with populateIdMapWithTree to halt upwards iteration
       * @returns {Node}
       */
      get __idiomorphRoot() {
        return this.originalNode;
      }
    }
    function parseContent(newContent) {
      let parser = new DOMParser();
      let contentWithSvgsRemoved = newContent.replace(
        /<svg(\s[^>]*>|>)([\s\S]*?)<\/svg>/gim,
        ""
      );
      if (contentWithSvgsRemoved.match(/<\/html>/) || contentWithSvgsRemoved.match(/<\/head>/) || contentWithSvgsRemoved.match(/<\/body>/)) {
        let content = parser.parseFromString(newContent, "text/html");
        content.doctype?.remove();
        if (contentWithSvgsRemoved.match(/<\/html>/)) {
          generatedByIdiomorph.add(content);
          return content;
        } else {
          let htmlElement = content.firstChild;
          if (htmlElement) {
            generatedByIdiomorph.add(htmlElement);
          }
          return htmlElement;
        }
      } else {
        let responseDoc = parser.parseFromString(
          "<body><template>" + newContent + "</template></body>",
          "text/html"
        );
        let content = (
          /** @type {HTMLTemplateElement} */
          responseDoc.body.querySelector("template").content
        );
        generatedByIdiomorph.add(content);
        return content;
      }
    }
    return { normalizeElement: normalizeElement2, normalizeParent: normalizeParent2 };
  })();
  const is = /* @__PURE__ */ (function() {
    const element = (value) => value instanceof Element || value?.nodeType === Node.ELEMENT_NODE;
    const htmlElement = (value, localName) => element(value) && value.localName === localName && value.namespaceURI === "http://www.w3.org/1999/xhtml";
    return {
      element,
      /** @param {unknown} value @returns {value is Node} */
      node: (value) => value instanceof Node || typeof /** @type {any} */
      value?.nodeType === "number",
      /** @param {Node | null | undefined} value @returns {value is Document} */
      document: (value) => value instanceof Document || value?.nodeType === Node.DOCUMENT_NODE,
      /** @param {Node | null | undefined} value @returns {value is HTMLTemplateElement} */
      templateElement: (value) => htmlElement(value, "template"),
      /** @param {Node | null | undefined} value @returns {value is HTMLHeadElement} */
      headElement: (value) => htmlElement(value, "head"),
      /** @param {Node | null | undefined} value @returns {value is HTMLInputElement} */
      inputElement: (value) => htmlElement(value, "input"),
      /** @param {Node | null | undefined} value @returns {value is HTMLOptionElement} */
      optionElement: (value) => htmlElement(value, "option"),
      /** @param {Node | null | undefined} value @returns {value is HTMLTextAreaElement} */
      textAreaElement: (value) => htmlElement(value, "textarea")
    };
  })();
  return {
    morph,
    defaults
  };
})();

// src/press.ts
var down = false;
var waiting = [];
addEventListener("pointerdown", (event) => {
  if (event.button === 0) down = true;
}, true);
for (const end of ["pointerup", "pointercancel", "keydown", "change"]) addEventListener(end, up, true);
addEventListener("pointermove", (event) => {
  if (event.buttons === 0) up();
}, true);
function up() {
  if (!down) return;
  down = false;
  setTimeout(() => {
    if (!down) for (const go of waiting.splice(0)) go();
  });
}
function released() {
  return down ? new Promise((go) => waiting.push(go)) : Promise.resolve();
}

// src/live.ts
var policy = window.trustedTypes?.createPolicy("page", { createHTML: (html) => html }) ?? { createHTML: (html) => html };
var pause = 250;
var longest = 3e4;
var leaving = 5e3;
function follow() {
  const every = Number(main()?.dataset.every ?? 0);
  if (every > 0) setInterval(() => {
    if (!document.hidden) void refresh();
  }, every * 1e3);
  if (main()?.dataset.live === void 0) return;
  const channel = new BroadcastChannel("humanqa-live");
  channel.onmessage = (event) => heard(String(event.data));
  const hold = () => new Promise(() => listen((streams) => {
    heard(streams);
    channel.postMessage(streams);
  }));
  document.addEventListener("humanqa:refresh", () => void refresh());
  if (navigator.locks) void navigator.locks.request("humanqa-live", hold);
  else void hold();
  heard("*");
}
function listen(tell, refusals = 0) {
  const source = new EventSource("/live");
  source.addEventListener("opened", () => {
    refusals = 0;
    tell("*");
  });
  source.addEventListener("ended", () => {
    source.close();
    tell("*");
  });
  source.onmessage = (event) => tell(event.data);
  source.onerror = () => {
    if (source.readyState === EventSource.CLOSED) setTimeout(() => listen(tell, refusals + 1), later(refusals + 1));
  };
}
function later(failures2) {
  return Math.min(longest, 2 ** failures2 * pause) * (0.5 + Math.random());
}
function heard(streams) {
  const shown = main()?.dataset.live?.split(" ") ?? [];
  const changed2 = streams.split(" ");
  if (shown.includes("*") || changed2.includes("*") || shown.some((stream) => changed2.includes(stream))) void refresh();
}
var due = false;
var busy = false;
var failures = 0;
var sent = -Infinity;
addEventListener("submit", (event) => {
  if (!event.defaultPrevented) sent = performance.now();
});
async function refresh() {
  if (busy) {
    due = true;
    return;
  }
  busy = true;
  try {
    const tag = main()?.dataset.tag ?? "";
    const asked = performance.now();
    const answer = await fetch(location.href, {
      headers: tag === "" ? {} : { "If-None-Match": '"' + tag + '"' },
      cache: "no-store",
      signal: AbortSignal.timeout(longest)
    });
    if (answer.redirected && performance.now() - sent < leaving) {
      due = true;
    } else if (answer.redirected) {
      if (document.dispatchEvent(new Event("humanqa:signedout", { cancelable: true }))) location.reload();
    } else if (answer.ok) {
      const text = await answer.text();
      await released();
      become(new DOMParser().parseFromString(policy.createHTML(text), "text/html"), asked);
    }
    if (answer.status === 404) document.dispatchEvent(new Event("humanqa:notfound"));
    failures = answer.status === 429 || answer.status >= 500 ? failures + 1 : 0;
  } catch {
    failures++;
  }
  due ||= failures > 0;
  await new Promise((wake) => setTimeout(wake, failures === 0 ? pause : later(failures)));
  busy = false;
  if (due) {
    due = false;
    void refresh();
  }
}
function become(next, asked) {
  const to = next.getElementById("main");
  const now = main();
  if (to === null || now === null) return;
  if (to.dataset.account !== now.dataset.account) return elsewhere(now);
  document.title = next.title;
  const focused = document.activeElement?.id ?? "";
  Idiomorph.morph(now, to, {
    // Only of a field: of anything else that has the focus it would leave all
    // that is in it as it was.
    ignoreActiveValue: document.activeElement?.matches("input, textarea, select") ?? false,
    callbacks: {
      // What a script of the page keeps is its own.
      beforeNodeMorphed: (node) => !(node instanceof Element && node.hasAttribute("data-own")),
      // What somebody opened, typed, or is about to send stays theirs.
      beforeAttributeUpdated: (name, node) => !(name === "open" && node instanceof HTMLDetailsElement) && !(name === "value" && node instanceof HTMLInputElement && node.name === "command") && !(name === "checked" && node instanceof HTMLInputElement && node.checked !== node.defaultChecked) && !(name === "selected" && node instanceof HTMLOptionElement && chosen(node.closest("select"))) && !(name === "value" && (node instanceof HTMLInputElement || node instanceof HTMLTextAreaElement) && node.value !== node.defaultValue)
    }
  });
  document.dispatchEvent(new CustomEvent("humanqa:refreshed", { detail: asked }));
  if (focused !== "" && document.activeElement === document.body) document.getElementById(focused)?.focus({ preventScroll: true });
}
function chosen(at) {
  return at.selectedOptions[0] !== ([...at.options].find((option) => option.defaultSelected) ?? at.options[0]);
}
function elsewhere(now) {
  if (document.getElementById("elsewhere") !== null) return;
  const said = Object.assign(document.createElement("p"), { id: "elsewhere", className: "notice notice-warn" });
  said.setAttribute("role", "status");
  said.append("You chose another account in another tab. This page still shows the previous account. ", Object.assign(document.createElement("a"), { href: location.href, textContent: "Load it again" }));
  now.prepend(said);
}
function main() {
  return document.getElementById("main");
}

// src/passkey.ts
function passkeys() {
  if (!("PublicKeyCredential" in window)) return;
  for (const form of document.querySelectorAll("form[data-passkey]")) {
    form.hidden = false;
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      void run(form);
    });
  }
}
async function run(form) {
  const note = form.querySelector("[data-note]");
  const say = (text) => {
    if (note !== null) note.textContent = text;
  };
  const button2 = form.querySelector("button");
  if (button2 !== null) button2.disabled = true;
  say("");
  try {
    const fields = new URLSearchParams(new FormData(form));
    const asked = await post(form.action + "/ask", fields);
    const answer = form.dataset.passkey === "new" ? await navigator.credentials.create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(asked.options.publicKey ?? asked.options) }) : await navigator.credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(asked.options.publicKey ?? asked.options) });
    if (answer === null) throw new Error("The browser gave no passkey.");
    fields.set("challenge", asked.challenge);
    fields.set("answer", JSON.stringify(answer.toJSON()));
    const done = await post(form.action, fields);
    if (done.post === void 0) location.assign(done.next);
    else {
      form.action = done.post;
      form.submit();
    }
  } catch (problem) {
    const name = problem.name;
    say(name === "InvalidStateError" ? "This device already has a passkey for you." : name === "NotAllowedError" || name === "AbortError" ? "The passkey was not used. Try again, or choose another way." : problem.message);
    if (button2 !== null) button2.disabled = false;
  }
}
async function post(url, fields) {
  const answer = await fetch(url, { method: "POST", body: fields, headers: { Accept: "application/json" } });
  const said = await answer.json();
  if (!answer.ok) throw new Error([said.error, said.hint].filter(Boolean).join(" "));
  return said;
}

// src/palette.ts
var rest = 120;
function palette() {
  const link = document.querySelector("[data-palette]");
  if (link === null) return;
  const parts2 = build(link.href);
  let asked;
  let timer = 0;
  const ask2 = async () => {
    asked?.abort();
    asked = new AbortController();
    const { signal } = asked;
    try {
      const answer = await fetch(link.pathname + "?q=" + encodeURIComponent(parts2.input.value), { headers: { Accept: "application/json" }, signal });
      if (answer.redirected) {
        location.reload();
        return;
      }
      if (!answer.ok) throw new Error(answer.statusText);
      parts2.show(await answer.json());
    } catch {
      if (!signal.aborted) parts2.say("The search does not answer. Try again.");
    }
  };
  const open = () => {
    if (parts2.dialog.open) return;
    parts2.input.value = "";
    parts2.show([]);
    parts2.say("");
    parts2.dialog.showModal();
    void ask2();
  };
  document.addEventListener("keydown", (event) => {
    if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || event.shiftKey || event.altKey) return;
    event.preventDefault();
    open();
  });
  link.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    open();
  });
  parts2.input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => void ask2(), rest);
  });
}
function build(action) {
  const dialog = document.body.appendChild(document.createElement("dialog"));
  dialog.className = "palette";
  dialog.setAttribute("aria-label", "Search");
  const form = dialog.appendChild(document.createElement("form"));
  form.action = action;
  const input = form.appendChild(document.createElement("input"));
  for (const [name, value] of Object.entries({
    name: "q",
    type: "search",
    placeholder: "Search tests, projects, people, pages and actions",
    maxlength: "200",
    autocomplete: "off",
    role: "combobox",
    "aria-label": "Search tests, projects, people, pages and actions",
    "aria-autocomplete": "list",
    "aria-controls": "palette-hits",
    "aria-expanded": "false"
  })) input.setAttribute(name, value);
  const list = dialog.appendChild(document.createElement("ul"));
  list.className = "hits";
  list.id = "palette-hits";
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", "Results");
  const status = dialog.appendChild(document.createElement("p"));
  status.setAttribute("role", "status");
  let hits = [];
  let at = 0;
  const mark = () => {
    [...list.children].forEach((row2, i) => row2.setAttribute("aria-selected", String(i === at)));
    const row = list.children[at];
    if (row === void 0) input.removeAttribute("aria-activedescendant");
    else input.setAttribute("aria-activedescendant", row.id);
    row?.scrollIntoView({ block: "nearest" });
  };
  const go = (hit) => {
    if (hit === void 0) return;
    dialog.close();
    location.assign(hit.href);
  };
  const say = (text) => {
    status.textContent = text;
  };
  const show3 = (next) => {
    hits = next;
    at = 0;
    list.replaceChildren(...hits.map((hit, i) => {
      const row = document.createElement("li");
      row.id = `palette-hit-${i}`;
      row.setAttribute("role", "option");
      const kind = row.appendChild(document.createElement("span"));
      kind.className = "kind";
      kind.textContent = hit.kind;
      const words = row.appendChild(document.createElement("span"));
      words.textContent = hit.text;
      if (hit.detail !== "") words.appendChild(document.createElement("small")).textContent = hit.detail;
      row.addEventListener("click", () => go(hit));
      return row;
    }));
    list.hidden = hits.length === 0;
    input.setAttribute("aria-expanded", String(hits.length > 0));
    say(hits.length === 0 ? "Nothing matches." : "");
    mark();
  };
  input.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step === void 0 || hits.length === 0) return;
    event.preventDefault();
    at = (at + step + hits.length) % hits.length;
    mark();
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    go(hits[at]);
  });
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
  });
  return { dialog, input, show: show3, say };
}

// src/picks.ts
function picks() {
  const list = document.querySelector(".table-pick");
  if (list === null) return;
  let on2 = localStorage.getItem("humanqa:keys") !== "off";
  const button2 = document.createElement("button");
  button2.type = "button";
  button2.className = "btn btn-quiet";
  button2.id = "pick-keys";
  button2.setAttribute("data-own", "");
  button2.textContent = "Keys J, K and X";
  button2.title = "J and K go down and up, X chooses a row";
  const show3 = () => button2.setAttribute("aria-pressed", String(on2));
  show3();
  button2.addEventListener("click", () => {
    on2 = !on2;
    localStorage.setItem("humanqa:keys", on2 ? "on" : "off");
    show3();
  });
  const put = () => {
    if (!button2.isConnected) list.closest("form")?.querySelector("footer")?.append(button2);
  };
  put();
  document.addEventListener("humanqa:refreshed", put);
  document.addEventListener("keydown", (event) => {
    const step = { j: 1, k: -1, x: 0 }[event.key.toLowerCase()];
    const target = event.target;
    if (!on2 || step === void 0 || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (target !== document.body && !list.contains(target) || document.querySelector("dialog[open]") !== null) return;
    const boxes = [...list.querySelectorAll('tbody input[type="checkbox"]')];
    const at = boxes.findIndex((box) => box.closest("tr").contains(target));
    if (step === 0 && at >= 0) boxes[at].click();
    else boxes[Math.min(Math.max(at + step, 0), boxes.length - 1)]?.focus();
    event.preventDefault();
  });
}

// src/player.ts
function players() {
  const player = (id) => {
    const video = document.getElementById(id ?? "");
    return video instanceof HTMLVideoElement ? video : null;
  };
  const play = (video, at) => {
    video.currentTime = at;
    video.scrollIntoView({ block: "nearest" });
    void video.play().catch(() => {
    });
  };
  document.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    const target = event.target;
    const link = target.closest("[data-seek]");
    const strip2 = target.closest("[data-strip]");
    const video = player(link?.dataset.player ?? strip2?.dataset.strip);
    if (video === null) return;
    if (link !== null) {
      event.preventDefault();
      play(video, Number(link.dataset.seek));
    } else if (Number.isFinite(video.duration)) {
      const box = strip2.getBoundingClientRect();
      play(video, video.duration * (event.clientX - box.left) / box.width);
    }
  });
  const moved = (event) => {
    const video = event.target;
    const now = document.querySelector(`[data-strip="${CSS.escape(video.id)}"] .now`);
    if (now === null || !Number.isFinite(video.duration)) return;
    now.removeAttribute("hidden");
    now.setAttribute("x", String(Math.min(99.75, 100 * video.currentTime / video.duration)));
    const links = [...document.querySelectorAll(`.marks [data-player="${CSS.escape(video.id)}"]:first-child`)];
    const last = links.filter((link) => Number(link.dataset.seek) <= video.currentTime + 0.05).at(-1);
    for (const link of links) link.toggleAttribute("data-now", link === last);
  };
  for (const kind of ["timeupdate", "seeked"]) document.addEventListener(kind, moved, true);
}

// src/notice.ts
var refused = "This browser does not allow notifications.";
function possible() {
  return typeof Notification !== "undefined";
}
function allowed() {
  return possible() && Notification.permission === "granted";
}
async function ask() {
  return await Notification.requestPermission() === "granted" ? "" : refused;
}
function show(title, body, tag, href = "") {
  try {
    const shown = new Notification(title, { body, tag });
    shown.onclick = () => {
      window.focus();
      if (href !== "") location.assign(href);
      shown.close();
    };
    return "";
  } catch {
    return refused;
  }
}

// src/told.ts
var wanted = "humanqa:told";
var cursor = "humanqa:told-after";
var pause2 = 2e4;
var several = 3;
function told() {
  const path = document.querySelector("[data-news]")?.dataset.news;
  if (path === void 0) return;
  switches();
  if (navigator.locks) void navigator.locks.request("humanqa-told", () => watch(path));
  else void watch(path);
}
function on() {
  return localStorage.getItem(wanted) === "on" && allowed();
}
async function watch(path) {
  for (; ; ) {
    if (on()) await look(path);
    const rested = new AbortController();
    await new Promise((wake) => {
      setTimeout(wake, pause2);
      for (const name of ["humanqa:refreshed", "humanqa:told"]) document.addEventListener(name, () => wake(), { signal: rested.signal });
    });
    rested.abort();
  }
}
async function look(path) {
  try {
    const after = localStorage.getItem(cursor) ?? "";
    const answer = await fetch(path + "?" + new URLSearchParams({ after }), { headers: { Accept: "application/json" }, signal: AbortSignal.timeout(pause2) });
    if (answer.status === 400 || answer.status === 422) localStorage.removeItem(cursor);
    if (!answer.ok || answer.redirected) return;
    const { cursor: next, news } = await answer.json();
    localStorage.setItem(cursor, next);
    if (news.length > several) show(news.length + " tests and notices", "The dashboard has them.", "humanqa-told", "/dashboard");
    else for (const one of news) show(one.title, one.text, one.id, one.href);
  } catch {
  }
}
function switches() {
  const at = document.getElementById("told");
  if (at === null) return;
  const button2 = at.querySelector("[data-told]");
  const says = at.querySelector("[role=status]");
  const set = () => {
    button2.setAttribute("aria-pressed", String(on()));
  };
  button2.hidden = !possible();
  if (!possible()) says.textContent = "This browser has no notifications.";
  button2.addEventListener("click", async () => {
    if (on()) {
      localStorage.removeItem(wanted);
      says.textContent = "";
    } else {
      says.textContent = await ask();
      if (says.textContent === "") {
        localStorage.setItem(wanted, "on");
        localStorage.removeItem(cursor);
        document.dispatchEvent(new Event("humanqa:told"));
      }
    }
    set();
  });
  set();
}

// src/verify.ts
function verifies() {
  show2();
  document.addEventListener("humanqa:refreshed", show2);
  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-verify-now]") !== null) void verify();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && event.target.id === "verify-secret") void verify();
  });
}
function part() {
  return document.querySelector("[data-verify]");
}
function show2() {
  const at = part();
  if (at !== null && "subtle" in crypto) at.hidden = false;
}
async function verify() {
  const at = part();
  const field = document.getElementById("verify-secret");
  const verdict = at?.querySelector("[data-verdict]");
  if (at === null || field === null || !verdict) return;
  const secret = field.value.trim();
  if (secret === "") {
    verdict.textContent = "Type the secret first.";
    return;
  }
  const body = document.getElementById("body")?.textContent ?? "";
  const { id, stamp, signature, standard } = at.dataset;
  const service = hex(await hmac(bytes(secret), bytes(body))) === signature;
  const own = "v1," + base64(await hmac(standardKey(secret), bytes(`${id}.${stamp}.${body}`)));
  const standardOf = (standard ?? "").split(" ");
  const says = [
    service ? "X-Service-Signature is made with this secret." : "X-Service-Signature is not made with this secret.",
    standardOf.includes(own) ? "webhook-signature is made with this secret, too." : "webhook-signature is not made with this secret."
  ];
  if (service !== standardOf.includes(own)) {
    says[1] = standardOf.includes(own) ? "webhook-signature is: a rotation was under way." : "webhook-signature is not.";
  }
  verdict.textContent = says.join(" ");
  verdict.className = standardOf.includes(own) || service ? "verified" : "refuted";
}
function bytes(text) {
  return new TextEncoder().encode(text);
}
async function hmac(key, message) {
  const imported = await crypto.subtle.importKey("raw", key, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  return new Uint8Array(await crypto.subtle.sign("HMAC", imported, message));
}
function standardKey(secret) {
  if (!secret.startsWith("whsec_")) return bytes(secret);
  try {
    const raw = atob(secret.slice(6).replaceAll("-", "+").replaceAll("_", "/"));
    return Uint8Array.from(raw, (c) => c.charCodeAt(0));
  } catch {
    return bytes(secret);
  }
}
function hex(of) {
  return Array.from(of, (b) => b.toString(16).padStart(2, "0")).join("");
}
function base64(of) {
  return btoa(String.fromCharCode(...of));
}

// src/zones.ts
var parts = {
  moment: { day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit", hourCycle: "h23", timeZoneName: "short" },
  day: { day: "numeric", month: "short", year: "numeric" },
  clock: { hour: "2-digit", minute: "2-digit", hourCycle: "h23", timeZoneName: "short" }
};
var formats = new Map(Object.entries(parts).map(([name, options]) => [name, new Intl.DateTimeFormat("en-GB", options)]));
function zones() {
  const show3 = () => {
    for (const time of document.querySelectorAll("time[data-zone]")) {
      const text = formats.get(time.dataset.zone)?.format(new Date(time.dateTime));
      if (text !== void 0 && time.textContent !== text) time.textContent = text;
    }
  };
  show3();
  document.addEventListener("humanqa:refreshed", show3);
}

// src/page.ts
follow();
zones();
passkeys();
ages();
copies();
scrubs();
countdowns();
players();
verifies();
strip();
palette();
told();
onces();
entries();
picks();
kept();
refused2();
function onces() {
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.dataset.once === void 0) return;
    if (form.dataset.once === "sent") event.preventDefault();
    form.dataset.once = "sent";
  });
  addEventListener("pageshow", () => {
    for (const form of document.querySelectorAll("form[data-once]")) form.dataset.once = "";
  });
}
function kept() {
  const form = document.querySelector("form[data-draft]");
  if (form === null) return;
  let timer = 0;
  let changed2 = false;
  const send = (leaving2) => {
    clearTimeout(timer);
    if (!changed2) return;
    changed2 = false;
    const fields = new URLSearchParams();
    for (const [name, value] of new FormData(form)) if (name !== "access" && name !== "command" && typeof value === "string") fields.append(name, value);
    void fetch(form.dataset.draft, { method: "POST", body: fields, headers: { Accept: "application/json" }, keepalive: leaving2 }).catch(() => {
      changed2 = true;
    });
  };
  form.addEventListener("input", () => {
    changed2 = true;
    clearTimeout(timer);
    timer = setTimeout(() => send(false), 800);
  });
  form.addEventListener("submit", () => {
    changed2 = false;
    clearTimeout(timer);
  });
  addEventListener("pagehide", () => send(true));
}
function refused2() {
  if (location.hash === "") return;
  addEventListener("load", () => setTimeout(() => document.querySelector("[autofocus]")?.focus()));
}
function strip() {
  const show3 = () => {
    const at = document.querySelector('.sidebar nav [aria-current="page"]');
    const nav = at?.closest("nav");
    if (at && nav) nav.scrollLeft += at.getBoundingClientRect().left - nav.getBoundingClientRect().left - 40;
  };
  show3();
  addEventListener("resize", show3);
}
function ages() {
  setInterval(() => {
    for (const time of document.querySelectorAll("time[data-ago]")) {
      const text = ago(Date.now() - Date.parse(time.dateTime));
      if (text !== "" && time.textContent !== text) time.textContent = text;
    }
  }, 2e4);
}
function ago(ms) {
  const minutes = Math.round(ms / 6e4);
  if (ms < 45e3) return "just now";
  if (ms < 36e5) return count2(Math.max(1, minutes), "minute") + " ago";
  if (ms < 36 * 36e5) return count2(Math.round(ms / 36e5), "hour") + " ago";
  return "";
}
function count2(n, noun) {
  return n === 1 ? "1 " + noun : n + " " + noun + "s";
}
function countdowns() {
  let ticks = 0;
  setInterval(() => {
    let arrived = document.querySelector("[data-sending]") !== null;
    for (const time of document.querySelectorAll("time[data-until]")) {
      const seconds = Math.ceil((Date.parse(time.dateTime) - Date.now()) / 1e3);
      arrived ||= seconds <= 0;
      if (seconds < 3600) time.textContent = seconds <= 0 ? "now" : seconds < 60 ? `in ${seconds} s` : "in " + count2(Math.round(seconds / 60), "minute");
    }
    if (arrived && ++ticks % 2 === 0 && document.getElementById("main")?.dataset.live !== void 0) void refresh();
  }, 1e3);
}
function copies() {
  document.addEventListener("click", async (event) => {
    const button2 = event.target.closest("[data-copy]");
    if (button2 === null) return;
    const source = document.getElementById(button2.dataset.copy);
    if (source === null) return;
    try {
      await navigator.clipboard.writeText((source.textContent ?? "").trim());
      announce("Copied");
      button2.classList.add("copied");
      setTimeout(() => button2.classList.remove("copied"), 1500);
    } catch {
      getSelection()?.selectAllChildren(source);
      announce("Selected: copy it with your keyboard");
    }
  });
}
function announce(text) {
  const at = document.getElementById("announcer");
  if (at !== null) at.textContent = text;
}
function scrubs() {
  document.addEventListener("input", (event) => {
    const slider = event.target;
    const form = slider.type === "range" ? slider.closest("form[data-scrub]") : null;
    if (form === null) return;
    slider.defaultValue = slider.value;
    history.replaceState(null, "", form.action.split("?")[0] + "?" + new URLSearchParams(new FormData(form)));
    void refresh();
  });
}
