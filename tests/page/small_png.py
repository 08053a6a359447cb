"""Makes pictures of pages small: few colours, by which all others are replaced."""

from __future__ import annotations

import json
import struct
import zlib
from base64 import b64decode, b64encode

from tests.page.browser import Tab

# The browser knows how to read pictures. Of colours that are much alike the most frequent is kept.
_NUMBERED = """(async (data) => {
  const loaded = await fetch("data:image/png;base64," + data);
  const picture = await createImageBitmap(await loaded.blob());
  const {width, height} = picture;
  const paint = new OffscreenCanvas(width, height).getContext("2d");
  paint.drawImage(picture, 0, 0);
  const found = new Uint32Array(paint.getImageData(0, 0, width, height).data.buffer);
  const often = new Map();
  for (const color of found) often.set(color, (often.get(color) || 0) + 1);
  const alike = new Map();
  for (const [color] of [...often].sort((a, b) => a[1] - b[1])) alike.set(color & 0xe0e0e0, color);
  const plenty = [...often].sort((a, b) => b[1] - a[1]).map((each) => each[0]);
  const kept = [...new Set([...alike.values(), ...plenty])].slice(0, 256);
  const parts = (color) => [color & 255, (color >> 8) & 255, (color >> 16) & 255];
  const far = (one, other) =>
    parts(one).reduce((sum, part, at) => sum + (part - parts(other)[at]) ** 2, 0);
  const number = new Map(kept.map((color, at) => [color, at]));
  for (const color of often.keys()) {
    if (number.has(color)) continue;
    let best = 0;
    for (let at = 1; at < kept.length; at++)
      if (far(color, kept[at]) < far(color, kept[best])) best = at;
    number.set(color, best);
  }
  let text = "";
  for (const color of found) text += String.fromCharCode(number.get(color));
  return {width, height, colors: kept.map(parts), pixels: btoa(text)};
})"""


def small(png: bytes, tab: Tab) -> bytes:
    """Return a PNG of 256 colours at most.

    Parameters
    ----------
    png : bytes
        The picture.
    tab : Tab
        A tab that shows nothing.
    """
    found = tab.evaluate(f"{_NUMBERED}({json.dumps(b64encode(png).decode())})")
    width, height = found["width"], found["height"]
    pixels = b64decode(found["pixels"])
    rows = b"".join(b"\0" + pixels[at : at + width] for at in range(0, width * height, width))
    colors = bytes(part for color in found["colors"] for part in color)
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        (
            _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
            _chunk(b"PLTE", colors),
            _chunk(b"IDAT", zlib.compress(rows, 9)),
            _chunk(b"IEND", b""),
        )
    )


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
