/**
 * Shows the panel in an empty page, as a notebook would. `take` gives it a message, `scroll` moves through its tasks;
 * what it sends goes to `window.kernel`, where there is one.
 */
async ([bundle, style]) => {
  const sheet = document.createElement("style");
  sheet.textContent = style;
  const root = document.createElement("main");
  document.body.replaceChildren(sheet, root);
  const listeners = new Set();
  const model = {
    on: (kind, listener) => kind === "msg:custom" && listeners.add(listener),
    off: () => {},
    get: (name) => window.traits?.[name],
    get widget_manager() {
      return window.manager; // of the notebook, where a test has one
    },
    send: (message) => window.kernel?.(message),
  };
  const address = URL.createObjectURL(new Blob([bundle], { type: "text/javascript" }));
  const widget = (await import(address)).default();
  const { signal } = new AbortController();
  widget.initialize({ model, signal });
  widget.render({ model, el: root, signal });
  root.querySelectorAll("[role=tab]")[1].click();

  const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
  window.take = async (message, text) => {
    const buffers = text ? [new DataView(new TextEncoder().encode(text).buffer)] : [];
    for (const listener of listeners) listener(message, buffers);
    await frame(); // drawn in this one
    await frame(); // and visible before this one
    return root.querySelectorAll(".wb-row:not([hidden])").length;
  };
  window.scroll = async (frames) => {
    const grid = root.querySelector(".wb-grid");
    const took = [];
    let before = await frame();
    for (let index = 0; index < frames; index += 1) {
      grid.scrollTop = ((index * 2_731) % grid.scrollHeight) + index;
      const now = await frame();
      took.push(now - before);
      before = now;
    }
    return took;
  };
};
