// Puts the chart into the page, where its text has the colour of the theme; where scripts do not run, it stays an image.
{
  const image = document.currentScript?.previousElementSibling;
  if (image?.tagName === "IMG") {
    const bytes = Uint8Array.from(atob(image.src.split(",")[1]), (character) => character.charCodeAt(0));
    const chart = new DOMParser().parseFromString(new TextDecoder().decode(bytes), "image/svg+xml").documentElement;
    chart.setAttribute("aria-label", image.alt);
    chart.style.maxWidth = "none"; // so that a wide chart is scrolled, not shrunk
    image.replaceWith(chart);
  }
}
