"use strict";
(() => {
  // Asks for what has changed every few seconds; the server writes all of it, as it wrote the page.
  const EVERY = 3000;
  const find = (id) => document.getElementById(id);
  const shown = {};
  let live = document.body.dataset.live === "yes";
  let paused = false;

  const source = () => {
    const path = location.pathname.endsWith("/") ? location.pathname + "index" : location.pathname;
    return path + ".json" + location.search;
  };

  function renew(id, html) {
    const place = find(id);
    if (!place) return location.reload();
    if (shown[id] === html) return;
    shown[id] = html;
    const focused = place.contains(document.activeElement) ? document.activeElement.id : "";
    place.innerHTML = html;
    if (focused) find(focused)?.focus({ preventScroll: true });
  }

  function tell(text) {
    find("trouble").textContent = text;
    find("trouble").hidden = !text;
  }

  async function ask() {
    try {
      const answer = await fetch(source(), { cache: "no-cache" });
      if (!answer.ok) throw new Error(String(answer.status));
      const told = await answer.json();
      for (const [id, html] of Object.entries(told.parts)) renew(id, html);
      if (find("news").textContent !== told.news) find("news").textContent = told.news;
      find("at").textContent = new Date().toLocaleTimeString();
      live = told.live;
      tell("");
    } catch {
      tell("The master does not answer. This is what was known at " + find("at").textContent + ".");
    }
  }

  async function go() {
    if (live && !paused && !document.hidden) await ask();
    if (live) setTimeout(go, EVERY);
    else find("pause").hidden = true;
  }

  find("pause").addEventListener("click", () => {
    paused = !paused;
    find("pause").textContent = paused ? "Go on" : "Pause";
    find("pause").setAttribute("aria-label", paused ? "Go on with updates" : "Pause updates");
  });
  find("at").textContent = new Date().toLocaleTimeString();
  find("clock").hidden = !live;
  if (live) setTimeout(go, EVERY);
})();
