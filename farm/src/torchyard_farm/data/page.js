"use strict";
(() => {
  // Polls for changed parts every few seconds; the server renders them, as it rendered the page.
  const EVERY = 3000;
  const find = (id) => document.getElementById(id);
  const shown = {};
  let live = document.body.dataset.live === "yes";
  let paused = false;

  const source = () => {
    const path = location.pathname.endsWith("/") ? location.pathname + "index" : location.pathname;
    return path + ".json" + location.search;
  };

  function replacePart(id, html) {
    const place = find(id);
    if (!place) return location.reload();
    if (shown[id] === html) return;
    shown[id] = html;
    const focused = place.contains(document.activeElement) ? document.activeElement.id : "";
    place.innerHTML = html;
    if (focused) find(focused)?.focus({ preventScroll: true });
  }

  function showError(text) {
    find("trouble").textContent = text;
    find("trouble").hidden = !text;
  }

  async function update() {
    try {
      const answer = await fetch(source(), { cache: "no-cache" });
      if (!answer.ok) throw new Error(String(answer.status));
      const view = await answer.json();
      for (const [id, html] of Object.entries(view.parts)) replacePart(id, html);
      if (find("news").textContent !== view.news) find("news").textContent = view.news;
      find("at").textContent = new Date().toLocaleTimeString();
      live = view.live;
      showError("");
    } catch {
      showError("The master does not answer. Last update: " + find("at").textContent + ".");
    }
  }

  async function poll() {
    if (live && !paused && !document.hidden) await update();
    if (live) setTimeout(poll, EVERY);
    else find("pause").hidden = true;
  }

  find("pause").addEventListener("click", () => {
    paused = !paused;
    find("pause").textContent = paused ? "Resume" : "Pause";
    find("pause").setAttribute("aria-label", paused ? "Resume updates" : "Pause updates");
  });
  find("at").textContent = new Date().toLocaleTimeString();
  find("clock").hidden = !live;
  if (live) setTimeout(poll, EVERY);
})();
