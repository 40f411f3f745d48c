/**
 * Measures the panel in JupyterLab's page: `measure.begin` and `measure.longest` the longest task between them,
 * `measure.press` how long a button takes until its answer is shown. All in milliseconds.
 */
() => {
  const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
  const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
  const found = [];
  const take = (entries) => found.push(...entries.map(({ duration }) => duration));
  const observer = new PerformanceObserver((list) => take(list.getEntries()));
  observer.observe({ entryTypes: ["longtask"] });

  window.measure = {
    begin() {
      take(observer.takeRecords());
      found.length = 0;
    },
    /** The browser reports tasks above 50 ms only, so this is never less. */
    async longest() {
      await pause(200); // a task is reported after its end
      take(observer.takeRecords());
      return Math.max(50, ...found);
    },
    async press(button, [card, answer]) {
      const began = performance.now();
      button.click();
      while (!card.textContent.includes(answer)) await frame();
      return performance.now() - began;
    },
    async scroll(grid, frames) {
      for (let index = 0; index < frames; index += 1) {
        grid.scrollTop = ((index * 2_731) % grid.scrollHeight) + index;
        await frame();
      }
    },
  };
};
