// Makes one element like another with the fewest changes: what is in use, focused or opened stays as it is.
// Children are matched by their id or data-key, the rest by their place.

const key = (node) => (node.nodeType === 1 ? node.id || node.dataset.key || null : null);
const alike = (a, b) => a.nodeType === b.nodeType && a.nodeName === b.nodeName && key(a) === key(b);

export function morph(from, to, { children = false } = {}) {
  if (!children) takeAttributes(from, to);
  const keyed = new Map();
  for (const child of from.childNodes) if (key(child)) keyed.set(key(child), child);
  let next = from.firstChild;
  for (const wanted of [...to.childNodes]) {
    let found = key(wanted) ? keyed.get(key(wanted)) : null;
    if (!found && next && !key(next) && alike(next, wanted)) found = next;
    if (!found || !alike(found, wanted)) {
      from.insertBefore(document.adoptNode(wanted), next);
      continue;
    }
    if (next && found === next.nextSibling && key(next)) {
      from.append(next); // it went elsewhere: moving it, not all that come after it
      next = found;
    }
    if (found === next) next = next.nextSibling;
    else from.insertBefore(found, next);
    if (found.nodeType === 1) morph(found, wanted);
    else if (found.nodeValue !== wanted.nodeValue) found.nodeValue = wanted.nodeValue;
  }
  while (next) {
    const gone = next;
    next = next.nextSibling;
    gone.remove();
  }
}

function takeAttributes(from, to) {
  if (from.matches("input, textarea, select")) return; // what somebody types is theirs
  for (const { name, value } of to.attributes) {
    if (from.getAttribute(name) !== value) from.setAttribute(name, value);
  }
  for (const { name } of [...from.attributes]) {
    if (!to.hasAttribute(name) && name !== "open") from.removeAttribute(name);
  }
}
