// Renews the page without loading it again: what did not change stays as it is, with focus, selection and scroll.
"use strict";
(() => {
  const every = 10000;
  const stale = document.getElementById("stale");
  const pause = document.getElementById("pause");
  let paused = false;
  let running = false;

  // morph makes the node say what the other says, and touches only what differs.
  function morph(now, next) {
    if (now.nodeType !== next.nodeType || now.nodeName !== next.nodeName) {
      now.replaceWith(document.importNode(next, true));
      return;
    }
    if (now.nodeType !== Node.ELEMENT_NODE) {
      if (now.nodeValue !== next.nodeValue) now.nodeValue = next.nodeValue;
      return;
    }
    if (now.hasAttribute("data-keep")) return;
    for (const { name } of [...now.attributes]) {
      if (!next.hasAttribute(name) && !(now.nodeName === "DETAILS" && name === "open")) now.removeAttribute(name);
    }
    for (const { name, value } of next.attributes) {
      if (now.getAttribute(name) !== value) now.setAttribute(name, value);
    }
    const olds = [...now.childNodes];
    const news = [...next.childNodes];
    news.forEach((each, i) => (olds[i] ? morph(olds[i], each) : now.append(document.importNode(each, true))));
    olds.slice(news.length).forEach((each) => each.remove());
  }

  async function renew() {
    if (paused || running || document.hidden) return;
    running = true;
    try {
      const answer = await fetch(location.href, { cache: "no-store", credentials: "same-origin", redirect: "manual" });
      if (!answer.ok) throw new Error(String(answer.status));
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      const main = fresh.getElementById("main");
      if (!main) throw new Error("another page");
      morph(document.getElementById("main"), main);
      morph(document.getElementById("asof"), fresh.getElementById("asof"));
      if (document.title !== fresh.title) document.title = fresh.title;
      stale.hidden = true;
    } catch {
      stale.hidden = false;
    } finally {
      running = false;
    }
  }

  pause.hidden = false;
  pause.addEventListener("click", () => {
    paused = !paused;
    pause.setAttribute("aria-pressed", String(paused));
    renew();
  });
  document.addEventListener("visibilitychange", renew);
  setInterval(renew, every);
})();
