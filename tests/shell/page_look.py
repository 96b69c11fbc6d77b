"""Looks at pages as a reader does, in Chromium: on a wide screen, on a telephone, and where the reader prefers dark.

    page_look.py FOLDER PAGE:WORD...

Each PAGE must show its WORD, in no mode wider than the screen, with no label of a chart on another, and with enough
contrast between text and paper. The pictures are FOLDER/PAGE-MODE.png.
"""
import os
import sys

import browser

MODES = {"wide": (1500, "light"), "narrow": (390, "light"), "dark": (1500, "dark")}

# Parts that stand out of the page on its right, but for tables and charts, which have a scroll bar of their own.
TOO_WIDE = """[...document.querySelectorAll('main *')].filter(e => !e.closest('.wide') &&
  e.getBoundingClientRect().right > document.documentElement.clientWidth + 1).map(e => e.textContent.slice(0, 60))"""

OVERLAPS = """(() => {
  const found = [];
  for (const svg of document.querySelectorAll('svg')) {
    const labels = [...svg.querySelectorAll('text')].map(e => [e.textContent, e.getBoundingClientRect()]);
    labels.forEach(([text, a], i) => labels.slice(i + 1).forEach(([other, b]) => {
      if (a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 3 && b.top < a.bottom - 3)
        found.push(text + ' | ' + other);
    }));
  }
  return found;
})()"""

# The contrast of the page's text, as the accessibility guidelines count it.
CONTRAST = """(() => {
  const light = color => color.match(/[0-9.]+/g).slice(0, 3).map(v => v / 255)
    .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const paper = light(getComputedStyle(document.body).backgroundColor);
  const texts = [...document.querySelectorAll('main p, main td, main th, main dd, main h2, main li, svg text')];
  return Math.min(...texts.map(e => {
    const style = getComputedStyle(e);
    const ink = light(e instanceof SVGElement ? style.fill : style.color);
    return (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
  }));
})()"""


def look(page, where, png=None):
    """Judges the open page in each mode, once its text is there. The pictures are png-MODE.png."""
    for mode, (width, scheme) in MODES.items():
        page.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        page.ask("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600)
        page.value(browser.PAINTED)
        for what, script in (("too wide", TOO_WIDE), ("labels on each other", OVERLAPS)):
            found = page.value(script)
            if found:
                browser.fail(f"{where}, {mode}: {what}: {found[:5]}")
        if page.value("document.documentElement.scrollWidth > document.documentElement.clientWidth"):
            browser.fail(f"{where}, {mode}: wider than the screen")
        contrast = page.value(CONTRAST)
        if contrast < 4.5:
            browser.fail(f"{where}, {mode}: a contrast of {contrast:.1f}")
        size = page.value("[innerWidth, document.documentElement.scrollHeight]")
        if png:
            page.take_picture(f"{png}-{mode}.png", captureBeyondViewport=True,
                              clip={"x": 0, "y": 0, "width": size[0], "height": min(size[1], 4000), "scale": 1})
        print(f"{where}, {mode}: {size[1]} lines high, contrast {contrast:.1f}")


def main():
    folder, *wanted = sys.argv[1:]
    with browser.Page(1500, 1000) as page:
        for item in wanted:
            path, word = item.split(":", 1)
            page.open("about:blank")
            page.open("file://" + os.path.realpath(path))
            page.await_text([word])
            look(page, path, os.path.join(folder, os.path.splitext(os.path.basename(path))[0]))


if __name__ == "__main__":
    main()
