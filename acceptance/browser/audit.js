// What can be seen to be wrong with a page: each function returns findings.
globalThis.pgherd.audit ??= (() => {
  const {named, related, middle} = globalThis.pgherd;

  const shown = el => el.checkVisibility({opacityProperty: true, visibilityProperty: true, contentVisibilityAuto: true});

  // around is an element with all that it is within.
  const around = el => el ? [el, ...around(el.parentElement)] : [];

  // wide finds what makes a page wider than the window: then all of it moves from side to side.
  const wide = width => {
    const has = document.scrollingElement.scrollWidth;
    if (has <= Math.min(width, innerWidth)) return [];
    const held = el => around(el.parentElement).some(e => getComputedStyle(e).overflowX !== 'visible');
    const beyond = [...document.body.querySelectorAll('*')]
      .filter(el => el.getBoundingClientRect().right + scrollX > width + 0.5 && !held(el));
    const inner = beyond.filter(el => !beyond.some(other => other !== el && el.contains(other)));
    return [`the page is ${has} wide in a window of ${width}, by ${inner.slice(0, 3).map(named).join(', ')}`];
  };

  // unseen reports whether an element is there for those only who do not see the page.
  const unseen = el => {
    const style = getComputedStyle(el);
    return el.clientWidth <= 1 && el.clientHeight <= 1 && style.overflow !== 'visible' ||
      style.clipPath.startsWith('inset(50%') || /^rect\([01]px,? [01]px/.test(style.clip);
  };

  // clips reports whether an element cuts something off a line of text that is within it. What can be scrolled to is not cut off:
  // free says in which directions it can be, and is told. Fonts are higher than the letters that are in use, hence the slack.
  const clips = (el, line, free) => {
    const style = getComputedStyle(el), box = el.getBoundingClientRect(), slack = line.height / 4;
    if (style.display === 'inline' && el.localName !== 'svg') return false;
    const left = box.left + el.clientLeft, right = left + (el.clientWidth || box.width);
    const top = box.top + el.clientTop, bottom = top + (el.clientHeight || box.height);
    const cuts = /^(hidden|clip)$/, scrolls = /^(auto|scroll)$/;
    const across = cuts.test(style.overflowX) && (line.left < left - 1 || line.right > right + 1);
    const down = cuts.test(style.overflowY) && (line.top < top - slack || line.bottom > bottom + slack);
    const found = across && !free.across || down && !free.down;
    free.across ||= scrolls.test(style.overflowX);
    free.down ||= scrolls.test(style.overflowY);
    return found;
  };

  // clipped reports whether anything cuts something off a line of an element's text.
  const clipped = (line, el) => {
    for (const free = {}; el && el !== document.body;) {
      if (clips(el, line, free)) return true;
      const {position} = getComputedStyle(el);
      if (position === 'fixed') return false;
      el = position === 'absolute' && el.offsetParent || el.parentElement;
    }
    return false;
  };

  // cut finds text of which a part is not to be seen, and which no title says whole.
  const cut = () => {
    const found = new Set(), texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let text; text = texts.nextNode();) {
      const el = text.parentElement, whole = text.data.trim().replace(/\s+/g, ' ');
      if (!whole || found.has(el) || el.closest('script, style, noscript, template, select, textarea, datalist')) continue;
      if (!shown(el) || around(el).some(e => unseen(e) || e.title?.includes(whole))) continue;
      const range = document.createRange();
      range.selectNodeContents(text);
      const lines = [...range.getClientRects()].filter(line => line.width && line.height);
      if (lines.some(line => clipped(line, el))) found.add(el);
    }
    return [...found].map(el => `the text of ${named(el)} is cut off`);
  };

  // moving finds what moves though the person asked for less of it.
  const moving = () => {
    if (!matchMedia('(prefers-reduced-motion: reduce)').matches) return [];
    return document.getAnimations()
      .filter(a => a.playState === 'running' && a.effect.getComputedTiming().duration > 1)
      .map(a => `${a.effect.target ? named(a.effect.target) : 'something'} moves, by ${a.animationName ?? a.transitionProperty}`);
  };

  // axed finds what axe-core does, by its rules with these tags.
  const axed = async tags => {
    const {violations} = await axe.run(document, {
      runOnly: tags, resultTypes: ['violations'], preload: false,
      rules: {'target-size': {enabled: true}}, // is off unless asked for
    });
    const why = text => text.replace(/\s+/g, ' ').replace(/^Fix (any|all) of the following: /, '');
    return violations.flatMap(v => v.nodes.map(n => `${v.id}: ${n.target.join(' ')}: ${why(n.failureSummary ?? v.help)}`));
  };

  const canvas = new OffscreenCanvas(1, 1).getContext('2d', {willReadFrequently: true});

  // colour is red, green, blue and alpha, from 0 to 1.
  const colour = css => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = css;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data].map(v => v / 255);
  };

  // behind is the colour that an element is seen against, or null where that is a picture.
  const behind = el => {
    for (const e of around(el)) {
      const style = getComputedStyle(e), ground = colour(style.backgroundColor);
      if (style.backgroundImage !== 'none') return null;
      if (ground[3] > 0.5) return ground;
    }
    const {colorScheme} = getComputedStyle(document.documentElement);
    const dark = colorScheme.includes('dark') && matchMedia('(prefers-color-scheme: dark)').matches;
    return dark ? [0.07, 0.07, 0.07, 1] : [1, 1, 1, 1];
  };

  // contrast is that of WCAG.
  const contrast = (a, b) => {
    const light = c => {
      const [red, green, blue] = c.map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
      return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
    };
    const [more, less] = [light(a), light(b)].sort((p, q) => q - p);
    return (more + 0.05) / (less + 0.05);
  };

  // outline is an element's, or '' where none can be seen.
  const outline = style => {
    const none = style.outlineStyle === 'none' || parseFloat(style.outlineWidth) === 0 || colour(style.outlineColor)[3] < 0.1;
    return none ? '' : [style.outlineStyle, style.outlineWidth, style.outlineColor].join();
  };

  // marks is what can show that the keyboard is at an element: on itself or, where that is unseen, around it or beside it.
  const marks = el => [el, el.parentElement, ...el.labels ?? [], el.nextElementSibling].filter(Boolean).map(e => {
    const s = getComputedStyle(e);
    return [s.boxShadow, s.borderColor, s.borderWidth, s.backgroundColor, s.color, s.textDecorationLine, outline(s)].join();
  }).join('|');

  // radio is the button of a group that the keyboard stops at.
  const radio = el => {
    const group = [...(el.form ?? document).querySelectorAll('input[type=radio]')].filter(r => r.name === el.name && !r.disabled);
    return group.find(r => r.checked) ?? group[0];
  };

  const useful = 'a[href], button, input, select, textarea, summary, [tabindex], [contenteditable]';

  // usable reports whether the keyboard has to come to an element.
  const usable = el => {
    const modal = document.querySelector('dialog:modal');
    return el.tabIndex >= 0 && el.checkVisibility({visibilityProperty: true}) && !el.matches(':disabled') &&
      !el.closest('[inert]') && (!modal || modal.contains(el)) && !(el.type === 'radio' && el.name && radio(el) !== el);
  };

  const before = new Map(); // what each element looked like while the keyboard was not there
  const reached = new Set();
  let last, rounds;

  // stops begins a walk by the keyboard, and returns at how many elements it has to come by.
  const stops = () => {
    document.activeElement?.blur();
    before.clear();
    reached.clear();
    rounds = 0;
    for (const el of document.querySelectorAll(useful)) if (usable(el)) before.set(el, marks(el));
    return before.size;
  };

  // faults says what is wrong with how an element has the keyboard.
  const faults = el => {
    const found = [], style = getComputedStyle(el), ring = outline(style);
    if (!ring && marks(el) === before.get(el)) found.push(`${named(el)} does not show that the keyboard is there`);
    const ground = ring && style.outlineStyle !== 'auto' && behind(parseFloat(style.outlineOffset) < 0 ? el : el.parentElement);
    if (ground && contrast(colour(style.outlineColor), ground) < 3)
      found.push(`the outline of ${named(el)} can hardly be told from what is behind it`);
    const at = middle(el), hit = at && document.elementFromPoint(at.x, at.y);
    if (at && !unseen(el) && !related(el, hit))
      found.push(`${named(el)} has the keyboard, and lies ${hit ? 'under ' + named(hit) : 'outside the window'}`);
    return found;
  };

  // stop says what is wrong with where the keyboard has come to, and whether it has been everywhere: it begins in the middle,
  // comes to the end, where it is nowhere, and goes on from the beginning.
  const stop = () => {
    const el = document.activeElement, within = el === last;
    last = el;
    if (!el || el === document.body || el === document.documentElement) return {over: ++rounds > 1, wrong: []};
    if (reached.has(el)) return {over: !within, wrong: []}; // A date has several places.
    reached.add(el);
    return {over: false, wrong: faults(el)};
  };

  // missed ends the walk, and finds what the keyboard did not come to.
  const missed = () => {
    document.activeElement?.blur();
    scrollTo(0, 0);
    return [...before.keys()].filter(el => !reached.has(el)).map(el => `the keyboard does not reach ${named(el)}`);
  };

  return {look: width => [...wide(width), ...cut(), ...moving()], axed, stops, stop, missed};
})();
