// Making elements, and changing them only where something has changed: a page that is
// written to many times a second must not be laid out as often.

const svg = 'http://www.w3.org/2000/svg';

// h makes an HTML element.
export function h(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

// s makes an SVG element.
export function s(name, attributes = {}, ...children) {
  return fill(document.createElementNS(svg, name), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) set(element, name, value);
  element.append(...children);
  return element;
}

// set gives an element an attribute; false and null take it away.
export function set(element, name, value) {
  if (value === false || value === null || value === undefined) {
    if (element.hasAttribute(name)) element.removeAttribute(name);
    return;
  }
  const text = value === true ? '' : String(value);
  if (element.getAttribute(name) !== text) element.setAttribute(name, text);
}

// say gives it a text.
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}
