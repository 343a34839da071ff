// Colours, read from the style sheet: only CSS distinguishes light, dark and print.

const GAMMA = 0.6; // as in the terminal: keeps weak pairs visible beside one strong pair

function readPalette(root) {
  const style = getComputedStyle(root);
  const read = (name) => style.getPropertyValue(`--pl-${name}`).trim();
  const [together, apart, neutral] = ["together", "apart", "neutral"].map((name) => channelsOf(read(name)));
  const [plus, minus] = [read("together"), read("apart")];
  const steps = 128;
  const ramp = Array.from({ length: 2 * steps + 1 }, (_, n) => {
    const end = n < steps ? apart : together;
    const share = Math.abs(n / steps - 1) ** GAMMA;
    const mixed = neutral.map((zero, channel) => Math.round(zero + share * (end[channel] - zero)));
    return { fill: `rgb(${mixed.join(" ")})`, ink: inkOn(mixed) };
  });
  return {
    shade: (share) => ramp[Math.round(steps * (1 + Math.max(-1, Math.min(1, share))))],
    line: (value) => (value < 0 ? minus : plus),
    ink: read("ink"),
    faint: read("faint"),
    paper: read("paper"),
  };
}

function channelsOf(colour) {
  return [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
}

// Black or white, whichever has more contrast, by the luminance of WCAG 2.
function inkOn(channels) {
  const [red, green, blue] = channels.map((channel) => {
    const c = channel / 255;
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue < 0.179 ? "#fff" : "#000";
}
