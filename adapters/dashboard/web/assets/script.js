// What the dashboard does in a browser. Every page and every action works without it, but for passkeys.
"use strict";
(() => {
  const policy = window.trustedTypes?.createPolicy("pgherd", { createHTML: (text) => text });
  const parse = (text) => new DOMParser().parseFromString(policy ? policy.createHTML(text) : text, "text/html");
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];

  // Secrets and addresses can be copied.
  const dress = (root) => {
    for (const button of all("[data-copy]", root)) button.hidden = false;
    if (window.PublicKeyCredential) for (const button of all("[data-passkey] > button", root)) button.hidden = false;
  };
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    const text = button.parentElement.querySelector("code");
    try {
      await navigator.clipboard.writeText(text.textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(text);
      button.textContent = "Selected";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });

  // A form is sent once, however often somebody clicks. A device is asked before, where the form is about a passkey.
  const post = async (url, fields) => {
    const answer = await fetch(url, { method: "POST", body: new URLSearchParams(fields), headers: { accept: "application/json" } });
    if (!answer.headers.get("content-type")?.startsWith("application/json")) throw new Error("The server did not answer: load the page again.");
    const body = await answer.json();
    if (body.error) throw new Error(body.error);
    if (body.to) location.assign(body.to);
    return body;
  };
  const askDevice = async (form) => {
    const asked = await post(form.dataset.begin, {});
    if (asked.to) return false;
    const create = form.dataset.passkey === "create";
    const options = create
      ? PublicKeyCredential.parseCreationOptionsFromJSON(asked.options.publicKey)
      : PublicKeyCredential.parseRequestOptionsFromJSON(asked.options.publicKey);
    const credential = await navigator.credentials[create ? "create" : "get"]({ publicKey: options });
    form.elements.challenge.value = asked.token;
    form.elements.response.value = JSON.stringify(credential.toJSON());
    return true;
  };
  document.addEventListener("submit", async (event) => {
    const form = event.target;
    if (form.method === "get") return;
    const button = event.submitter || form.querySelector("button");
    if (!form.dataset.passkey) {
      setTimeout(() => { button.disabled = true; });
      return;
    }
    event.preventDefault();
    const wrong = form.querySelector(".wrong[hidden], .wrong");
    button.disabled = true;
    try {
      if (await askDevice(form)) form.submit();
    } catch (error) {
      wrong.hidden = false;
      wrong.textContent = error.name === "NotAllowedError" ? "The device did not answer: try again." : error.message;
      button.disabled = false;
    }
  });
  addEventListener("pageshow", (event) => { if (event.persisted) for (const button of all("button[disabled]")) button.disabled = false; });

  // A page that is open is brought up to date, section by section: when the server says that something has changed, and once a
  // minute. What somebody is typing in stays.
  const main = document.getElementById("main");
  let reading = false, again = false, gone = false, source, retry, pause = 5000;
  const busy = (node) => node.contains(document.activeElement) && document.activeElement.matches("input, select, textarea, button")
    || all("input:not([type=hidden]), textarea", node).some((i) => i.type === "checkbox" ? i.checked !== i.defaultChecked : i.value !== i.defaultValue);
  const refresh = async () => {
    if (gone) return;
    if (reading) { again = true; return; }
    reading = true;
    try {
      const url = new URL(location.href);
      url.searchParams.delete("did");
      const answer = await fetch(url, { headers: { accept: "text/html" } });
      if (answer.redirected) { location.reload(); return; }
      if (!answer.ok && answer.status !== 404) return;
      const fresh = parse(await answer.text());
      if (answer.status === 404) { // it was taken away: nothing of it stays to be seen
        gone = true;
        source?.close();
        document.body.replaceWith(document.adoptNode(fresh.body));
        return;
      }
      for (const id of ["head", ...all("section[id]").map((s) => s.id)]) {
        const [old, now] = [document.getElementById(id), fresh.getElementById(id)];
        if (!old || !now || busy(old)) continue;
        all("details", old).forEach((d, i) => { const other = all("details", now)[i]; if (other && d.open) other.open = true; });
        dress(now);
        if (!old.isEqualNode(now)) old.replaceWith(document.adoptNode(now));
      }
    } catch { /* the server is away: the next minute comes */ } finally {
      reading = false;
      if (again) { again = false; refresh(); }
    }
  };
  if (main.dataset.live) {
    const listen = () => {
      source = new EventSource(main.dataset.live);
      source.addEventListener("open", () => { pause = 5000; refresh(); }); // from here on, every change is told
      source.addEventListener("changed", refresh);
      source.addEventListener("gone", () => { source.close(); refresh(); });
      source.addEventListener("error", () => { // a browser gives up where the answer is no stream, as while too many are open
        if (gone || source.readyState !== EventSource.CLOSED) return;
        retry = setTimeout(listen, pause * (1 + Math.random()));
        pause = Math.min(2 * pause, 300000);
      });
    };
    addEventListener("pagehide", () => { clearTimeout(retry); source.close(); });
    listen();
    addEventListener("pageshow", (event) => { if (event.persisted) listen(); });
  }
  if (main.dataset.live !== undefined) {
    addEventListener("pageshow", (event) => { if (event.persisted) refresh(); });
    setInterval(() => { if (!document.hidden) refresh(); }, 60000);
    document.addEventListener("visibilitychange", () => { if (!document.hidden) refresh(); });
  }
  dress(document);
})();
