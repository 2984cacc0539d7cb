// What is asked of a page. world.go says where this runs.
globalThis.pgherd ??= (() => {
  const scope = selector => selector ? document.querySelector(selector) : document.documentElement;

  // named tells an element to whoever reads what is said of it.
  const named = el => {
    const id = el.id ? '#' + el.id : [...el.classList].map(c => '.' + c).join('');
    const text = el.getAttribute('aria-label') || el.innerText || el.getAttribute('name') || el.textContent || '';
    return `<${el.localName}${id}> ${JSON.stringify(text.trim().replace(/\s+/g, ' ').slice(0, 40))}`;
  };

  // related reports whether whoever points at what was hit points at an element: at a part of it, or at its label.
  const related = (el, hit) => hit && (el.contains(hit) || hit.localName === 'label' && hit.contains(el) ||
    [...el.labels ?? []].some(label => label.contains(hit)));

  // middle is the point where a person would click: in the first line of an element that has several, and of one that is larger
  // than the window in the part that is in it.
  const middle = el => {
    const box = el.getClientRects()[0];
    if (!box) return undefined;
    const within = (from, to, most) => from < most && to > 0 ? (Math.max(from, 0) + Math.min(to, most)) / 2 : (from + to) / 2;
    return {x: within(box.left, box.right, innerWidth), y: within(box.top, box.bottom, innerHeight)};
  };

  const disabled = el => el.matches(':disabled') || el.closest('[inert]') ? named(el) + ' is disabled' : '';

  const aim = el => {
    el.scrollIntoView({block: 'center', inline: 'nearest', behavior: 'instant'});
    const at = middle(el);
    if (!at) return {wrong: named(el) + ' cannot be seen'};
    const hit = document.elementFromPoint(at.x, at.y);
    const covered = related(el, hit) ? '' : `${named(el)} lies under ${hit ? named(hit) : 'nothing'}`;
    return {...at, wrong: disabled(el) || covered};
  };

  const changed = el => {
    el.dispatchEvent(new Event('input', {bubbles: true}));
    el.dispatchEvent(new Event('change', {bubbles: true}));
  };

  // fill sets a field that has no text, and prepares one for the text to be typed.
  const fill = (el, text) => {
    if (disabled(el)) return {wrong: disabled(el)};
    if (el.readOnly) return {wrong: named(el) + ' is only to be read'};
    el.focus();
    if (/^(date|datetime-local|time|month|week|range|color)$/.test(el.type)) {
      el.value = text;
      changed(el);
      return {typed: false, wrong: el.value === text ? '' : `${named(el)} does not take ${text}`};
    }
    if (el.select) el.select(); else getSelection().selectAllChildren(el);
    return {typed: true, wrong: document.activeElement === el ? '' : named(el) + ' cannot be typed into'};
  };

  const choose = (el, text) => {
    if (disabled(el)) return {wrong: disabled(el)};
    const options = [...el.options ?? []].filter(o => !o.disabled), labels = options.map(o => o.label.trim());
    if (!labels.includes(text)) return {wrong: `of ${labels.join(', ')} none is ${text}`};
    el.focus();
    options[labels.indexOf(text)].selected = true;
    changed(el);
    return {wrong: ''};
  };

  const value = el => ({
    value: /^(checkbox|radio)$/.test(el.type) ? el.checked ? 'on' : '' : el.value ?? el.innerText,
    wrong: '',
  });

  return {scope, aim, fill, choose, value, named, related, middle};
})();
