/**
 * What is below WCAG AA in the desk, as [ratio, text]: words whose contrast with what is behind them is below 4.5, and
 * edges of fields and buttons whose contrast is below 3.
 */
() => {
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const remembered = (compute) => {
    const known = new Map();
    return (key) => known.get(key) ?? known.set(key, compute(key)).get(key);
  };
  const rgba = remembered((colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  });
  const over = (top, below) => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3]));
  const WHITE = [255, 255, 255];
  const luminance = (colour) => {
    const [r, g, b] = colour.map((c) => (c / 255 <= 0.03928 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = remembered((element) => {
    const colour = rgba(getComputedStyle(element).backgroundColor);
    return over(colour, element.parentElement && colour[3] < 1 ? ground(element.parentElement) : WHITE);
  });
  const contrast = (colour, behind) => {
    const [high, low] = [luminance(over(rgba(colour), behind)), luminance(behind)].sort((a, b) => b - a);
    return (high + 0.05) / (low + 0.05);
  };
  const faint = [];
  const note = (ratio, least, text) => ratio < least && faint.push([Math.round(ratio * 10) / 10, text]);
  const desk = document.querySelector(".wb-desk");
  const words = document.createTreeWalker(desk, NodeFilter.SHOW_TEXT);
  while (words.nextNode()) {
    const element = words.currentNode.parentElement;
    const text = words.currentNode.textContent.trim();
    if (!text || !element.checkVisibility({ visibilityProperty: true })) continue;
    note(contrast(getComputedStyle(element).color, ground(element)), 4.5, text);
  }
  for (const control of desk.querySelectorAll(".wb-input, .wb-button, .wb-segment")) {
    const { borderTopColor: edge, borderTopWidth: width } = getComputedStyle(control);
    const isOff = !control.checkVisibility({ visibilityProperty: true }) || control.ariaDisabled === "true";
    if (isOff || parseFloat(width) === 0 || rgba(edge)[3] === 0) continue;
    note(contrast(edge, ground(control.parentElement)), 3, `the edge of ${control.ariaLabel ?? control.textContent}`);
  }
  return faint;
};
