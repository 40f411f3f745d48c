/** Visible controls of the desk that Tab does not reach; of tabs it reaches the selected one, the arrows the others. */
() => {
  const desk = document.querySelector(".wb-desk");
  const controls = desk.querySelectorAll(
    "button, a[href], input, select, textarea, summary, [role=button], [role=tab]",
  );
  return [...controls]
    .filter((control) => control.checkVisibility({ visibilityProperty: true }) && control.tabIndex < 0)
    .filter((control) => control.role !== "tab" || control.ariaSelected === "true")
    .map((control) => control.ariaLabel ?? control.textContent);
};
