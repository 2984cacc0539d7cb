'use strict';
const out = document.querySelector('#out');
const ask = async (path, body) => (await fetch(path, {method: 'POST', body: body && JSON.stringify(body)})).json();
const on = (id, does) => document.getElementById(id)?.addEventListener('click', async () => {
  try { out.textContent = await does(); } catch (e) { out.textContent = `refused: ${e.name}`; }
});
on('register', async () => {
  const {publicKey} = await ask('/register/begin');
  const made = await navigator.credentials.create({publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(publicKey)});
  return ask('/register/finish', made.toJSON());
});
on('enter', async () => {
  const {publicKey} = await ask('/enter/begin');
  const made = await navigator.credentials.get({publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(publicKey)});
  return ask('/enter/finish', made.toJSON());
});
if (document.querySelector('#live')) new EventSource('/stream').onmessage = e => { out.textContent = e.data; };
