// What a reader would see of the document: run in the page, returns plain data.
const shown = element => {
  const box = element.getBoundingClientRect();
  return box.width > 0 && box.height > 0 && element.checkVisibility({visibilityProperty: true, contentVisibilityAuto: true});
};
const rgb = text => {
  const parts = text.match(/[\d.]+/g).map(Number);
  return parts.length < 4 ? [...parts, 1] : parts;
};
const luminance = ([r, g, b]) => {
  const [x, y, z] = [r, g, b].map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  return 0.2126 * x + 0.7152 * y + 0.0722 * z;
};
const contrast = (one, other) => {
  const [high, low] = [luminance(one), luminance(other)].sort((a, b) => b - a);
  return (high + 0.05) / (low + 0.05);
};
const behind = element => {
  for (let each = element; each; each = each.parentElement) {
    const colour = rgb(getComputedStyle(each).backgroundColor);
    if (colour[3] === 1) return colour;
  }
  return [255, 255, 255, 1];
};
const texts = [...document.body.querySelectorAll('*')].filter(
  element => element.closest('title') === null && shown(element)
    && [...element.childNodes].some(node => node.nodeType === 3 && node.textContent.trim()));
const contrasts = texts.map(element => {
  const style = getComputedStyle(element);
  const colour = rgb(element.namespaceURI.endsWith('svg') ? style.fill : style.color);
  return {text: element.textContent.trim().slice(0, 40), tag: element.tagName, ratio: contrast(colour, behind(element))};
});
const drawings = [...document.querySelectorAll('svg')].map(svg => {
  const box = svg.getBoundingClientRect();
  const labels = [...svg.querySelectorAll('text')].map(text => {
    const {left, right, top, bottom} = text.getBoundingClientRect();
    return {text: text.textContent, left, right, top, bottom, size: parseFloat(getComputedStyle(text).fontSize) * box.width / svg.viewBox.baseVal.width};
  });
  return {role: svg.getAttribute('role'), label: svg.getAttribute('aria-label'), shown: shown(svg),
    left: box.left, right: box.right, top: box.top, bottom: box.bottom, labels};
});
return {
  width: document.documentElement.scrollWidth,
  window: window.innerWidth,
  contrasts,
  drawings,
  background: getComputedStyle(document.documentElement).backgroundColor,
  listings: [...document.querySelectorAll('pre')].map(shown),
  tables: [...document.querySelectorAll('table')].filter(shown).map(table => {
    const frame = table.closest('.scroll') ?? table;
    return {left: frame.getBoundingClientRect().left, right: frame.getBoundingClientRect().right};
  }),
  verdict: document.querySelector('.badge').getBoundingClientRect().top + scrollY,
  requests: performance.getEntriesByType('resource').map(entry => entry.name),
};
