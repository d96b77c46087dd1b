// Draws one instance as what it is. Names are only ever written as text: nothing here makes HTML from a string.

function element(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value !== null && value !== undefined && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

function shape(tag, attributes, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

// A name of a bag or class, kept from turning the direction of the text around it.
function nameOf(text, kind) {
  return element("bdi", { class: "name" + (kind ? " " + kind : ""), title: text.length > 24 ? text : null }, text);
}

function percent(share) {
  if (share >= 0.9995 && share < 1) return ">\u00a099.9\u00a0%";
  if (share < 0.0005 && share > 0) return "<\u00a00.1\u00a0%";
  return (100 * share).toFixed(1).replace(/\.0$/, "") + "\u00a0%";
}

function bytesOf(base64) {
  return Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
}

class Drawer {
  constructor(data) {
    this.kind = data.kind;
    this.legend = data.legend;
    this.sheets = data.sheets;
    this.opened = new Map(); // sheets are decoded when the first of their instances is shown
    this.typical = data.kind === "profile" ? bytesOf(data.legend.typical) : null;
  }

  // Instance number `at` of a sheet, in a bag of the classes `label` and `second` (-1: none).
  draw(sheet, at, label, second, description) {
    if (this.kind === "words") return this.words(this.sheets[sheet][at], description);
    if (this.kind === "profile") return this.profile(sheet, at, label, second, description);
    return this.image(sheet, at, description);
  }

  open(sheet, how) {
    if (!this.opened.has(sheet)) this.opened.set(sheet, how(this.sheets[sheet]));
    return this.opened.get(sheet);
  }

  image(sheet, at, description) {
    const [width, height] = this.legend.image;
    const scale = 64 / Math.max(width, height);
    const canvas = element("canvas", { width, height, role: "img", "aria-label": description });
    canvas.style.width = width * scale + "px";
    canvas.style.height = height * scale + "px";
    if (scale > 1.5) canvas.style.imageRendering = "pixelated";
    const picture = this.open(sheet, (uri) => {
      const image = new Image();
      image.src = uri;
      return image.decode().then(() => image);
    });
    const [wide, tall] = this.legend.tile;
    const left = (at % this.legend.across) * wide;
    const top = Math.floor(at / this.legend.across) * tall;
    picture.then((image) => canvas.getContext("2d").drawImage(image, left, top, width, height, 0, 0, width, height));
    return canvas;
  }

  profile(sheet, at, label, second, description) {
    const n = this.legend.points;
    const points = this.open(sheet, (content) => bytesOf(content.points));
    const x = (j) => (n === 1 ? 60 : 2 + (116 * j) / (n - 1)).toFixed(1);
    const y = (value) => (52 - (48 * value) / 255).toFixed(1);
    const line = (values, start) =>
      Array.from({ length: n }, (_, j) => (j ? "L" : "M") + x(j) + " " + y(values[start + j])).join("");
    const zero = y(this.legend.zero);
    const drawn = shape("svg", { viewBox: "0 0 120 56", role: "img", "aria-label": description, class: "profile" });
    drawn.append(
      shape("line", { x1: 0, x2: 120, y1: zero, y2: zero, class: "zero" }),
      shape("path", { d: line(this.typical, label * n) + `L${x(n - 1)} ${zero}L${x(0)} ${zero}Z`, class: "typical" }),
    );
    if (second >= 0) drawn.append(shape("path", { d: line(this.typical, second * n), class: "other" }));
    drawn.append(shape("path", { d: line(points, at * n), class: "own" }));
    if (n <= 16) {
      for (let j = 0; j < n; j++) drawn.append(shape("circle", { cx: x(j), cy: y(points[at * n + j]), r: 2, class: "own" }));
    }
    const told = this.sheets[sheet].told[at] || [];
    const values = told.map(([j, value]) =>
      element("span", {}, nameOf(this.legend.features[j]), " " + value));
    return element("div", { class: "measured" }, drawn, told.length ? element("p", { class: "told" }, ...values) : null);
  }

  words(words, description) {
    const chips = words.map(([word, weight, side]) => {
      const kind = ["", "for-label", "for-second"][side];
      const chip = element("li", { class: kind, title: "weight " + weight + " of 100" }, nameOf(this.legend.vocabulary[word]));
      chip.style.fontSize = (0.72 + 0.5 * Math.sqrt(weight / 100)).toFixed(2) + "rem";
      return chip;
    });
    return element("ul", { class: "words", "aria-label": description }, ...chips);
  }
}
