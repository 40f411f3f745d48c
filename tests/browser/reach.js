/**
 * Visible controls of the desk that Tab does not reach. Of tabs it reaches the selected one, of the marks of a chart the
 * last that had the focus; the arrows reach the others.
 */
() => {
  const desk = document.querySelector(".wb-desk");
  const controls = desk.querySelectorAll(
    "button, a[href], input, select, textarea, summary, [role=button], [role=tab]",
  );
  return [...controls]
    .filter((control) => control.checkVisibility({ visibilityProperty: true }) && control.tabIndex < 0)
    .filter((control) => control.role !== "tab" || control.ariaSelected === "true")
    .filter(
      (control) => !control.matches(".wb-chart-mark") || !control.closest(".wb-canvas").querySelector("[tabindex='0']"),
    )
    .map((control) => control.ariaLabel ?? control.textContent);
};
