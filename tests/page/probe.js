// What the tests ask the page about itself. Each function returns plain data.
window.probe = {
  // wide is the elements that stick out of the window.
  wide() {
    if (document.documentElement.scrollWidth <= window.innerWidth) return [];
    return [...document.body.querySelectorAll("*")]
      .filter((e) => e.getBoundingClientRect().right > window.innerWidth + 0.5)
      .map((e) => e.tagName + "." + e.className + ": " + e.textContent.trim().slice(0, 60));
  },

  // pale is the texts whose contrast with what lies behind them is below the limit.
  pale(limit) {
    const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    const parse = (color) => {
      canvas.clearRect(0, 0, 1, 1);
      canvas.fillStyle = color;
      canvas.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
      return [r, g, b, a / 255];
    };
    const over = (top, under) => [0, 1, 2].map((i) => top[i] * top[3] + under[i] * (1 - top[3])).concat(1);
    const behind = (element) => {
      const layers = [];
      for (let e = element; e; e = e.parentElement) layers.push(parse(getComputedStyle(e).backgroundColor));
      return layers.reverse().reduce((under, top) => over(top, under), [255, 255, 255, 1]);
    };
    const luminance = (color) => {
      const [r, g, b] = color.map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
      return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const seen = [];
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    let checked = 0;
    while (texts.nextNode()) {
      const element = texts.currentNode.parentElement;
      if (!texts.currentNode.nodeValue.trim() || !element.checkVisibility() || element.closest("script, noscript, option")) continue;
      const under = behind(element);
      const [a, b] = [luminance(over(parse(getComputedStyle(element).color), under)), luminance(under)];
      const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
      checked++;
      if (ratio < limit) seen.push(ratio.toFixed(2) + ": " + texts.currentNode.nodeValue.trim().slice(0, 40));
    }
    return { checked, seen };
  },

  // interactive is how many elements a person can do something with.
  interactive() {
    return [...document.querySelectorAll("a[href], button, input, select, summary, [tabindex='0']")].filter((e) => e.checkVisibility()).length;
  },

  // focused describes the element with the focus, and whether one can see that it has it.
  focused() {
    const e = document.activeElement;
    if (!e || e === document.body) return null;
    const style = getComputedStyle(e);
    const box = e.getBoundingClientRect();
    probe.number = probe.number || new Map();
    if (!probe.number.has(e)) probe.number.set(e, probe.number.size);
    return {
      number: probe.number.get(e),
      name: e.tagName + " " + (e.textContent.trim() || e.name || "").slice(0, 40),
      visible: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2 && box.bottom > 0 && box.top < innerHeight,
    };
  },

  // structure is what a screen reader moves by.
  structure() {
    const all = (selector) => [...document.querySelectorAll(selector)];
    return {
      language: document.documentElement.lang,
      headings: all("h1, h2, h3").filter((e) => e.checkVisibility()).map((e) => Number(e.tagName[1])),
      mains: all("main").length,
      banners: all("body > header").length,
      unnamedNavs: all("nav:not([aria-label])").length,
      live: all("[role=status][aria-live=polite]").length,
      tables: all("table").length,
      captions: all("table > caption").length,
      headless: all("th:not([scope])").length,
      ids: all("[id]").map((e) => e.id).filter((id, i, ids) => ids.indexOf(id) !== i),
    };
  },
};
