// Progress, checks while typing, and the little that forms need. Without it everything still works, with more clicks.
"use strict";

const page = document.body.dataset;
const api = (path, options = {}) =>
  fetch(`/api/cases/${page.case}${path}`, {
    ...options,
    headers: { "x-unblur-token": page.token, ...(options.headers || {}) },
  });
document.documentElement.classList.add("scripted");

// Forms

for (const form of document.querySelectorAll("form[data-confirm]")) {
  form.addEventListener("submit", (event) => {
    if (!confirm(form.dataset.confirm)) event.preventDefault();
  });
}

for (const form of document.querySelectorAll("form[data-upload]")) {
  const message = form.querySelector("[data-message]");
  form.addEventListener("submit", (event) => {
    const files = [...form.querySelectorAll("input[type=file]")].flatMap((input) => [...input.files]);
    const size = files.reduce((sum, file) => sum + file.size, 0);
    const empty = files.find((file) => file.size === 0);
    message.hidden = true;
    if (size > Number(page.limit)) {
      message.textContent = `The files are larger than ${Math.round(page.limit / 1e6).toLocaleString("en")} MB, the limit of this page.`;
    } else if (empty) {
      message.textContent = `${empty.name} is empty.`;
    } else {
      form.querySelector("button").textContent = "Sending …";
      return;
    }
    message.hidden = false;
    event.preventDefault();
  });
}

for (const drop of document.querySelectorAll(".drop")) {
  const input = drop.querySelector("input");
  const hint = drop.querySelector(".drop-hint");
  const usual = hint.textContent;
  const show = () => {
    hint.textContent = input.files.length ? input.files[0].name : usual;
    drop.classList.toggle("chosen", input.files.length > 0);
  };
  input.addEventListener("change", show);
  window.addEventListener("pageshow", show);
  for (const kind of ["dragenter", "dragover"]) drop.addEventListener(kind, () => drop.classList.add("over"));
  for (const kind of ["dragleave", "drop"]) drop.addEventListener(kind, () => drop.classList.remove("over"));
}
// A button says "Sending …" until the page is left; coming back, it must say what it does.
window.addEventListener("pageshow", (event) => {
  if (event.persisted) location.reload();
});

// Progress

const progress = document.querySelector("[data-progress]");
if (progress) {
  const bar = progress.querySelector("progress");
  const stage = progress.querySelector("[data-stage]");
  const follow = async () => {
    try {
      const answer = await api(`/jobs/${progress.dataset.progress}`);
      if (!answer.ok) return location.reload();
      const job = await answer.json();
      if (job.next) return location.replace(job.next);
      if (job.state === "failed" || job.state === "cancelled") return location.reload();
      if (job.of) {
        bar.max = job.of;
        bar.value = job.done;
      } else bar.removeAttribute("value");
      const waiting = job.ahead ? `waiting, ${job.ahead} before it` : "waiting";
      stage.textContent =
        job.state === "waiting" ? waiting : (job.stage || "starting") + (job.of ? `: ${job.done} of ${job.of}` : "");
    } catch {
      stage.textContent = "the program does not answer; is it still running?";
    }
    setTimeout(follow, 400);
  };
  follow();
}

// The description, checked while it is typed

const form = document.querySelector("form[data-describe]");
if (form) {
  const setting = () => {
    const found = { columns: [] };
    for (const [name, value] of new FormData(form)) {
      if (value instanceof File || ["token", "action"].includes(name)) continue;
      const [first, number, field] = name.split(".");
      const [target, key] = field ? [(found.columns[number] ??= {}), field] : [found, first];
      target[key] = key in target ? `${target[key]},${value}` : value;
    }
    for (const column of found.columns) column.periods ??= "";
    found.constant = found.constant === "true";
    return found;
  };
  let last = 0;
  const check = async () => {
    const turn = ++last;
    form.setAttribute("aria-busy", "true");
    try {
      const answer = await api("/check", {
        method: "POST",
        body: JSON.stringify(setting()),
        headers: { "content-type": "application/json" },
      });
      const found = await answer.json();
      if (turn !== last) return;
      if (answer.ok) show(found);
      else form.querySelector("[data-preview]").textContent = found.message;
    } catch {
      form.querySelector("[data-preview]").textContent = "The program does not answer; is it still running?";
    } finally {
      if (turn === last) form.removeAttribute("aria-busy");
    }
  };
  const show = (found) => {
    for (const place of form.querySelectorAll("[data-problem]")) {
      const mine = found.problems.filter((each) => each.field === place.dataset.problem);
      const text = mine.map((each) => each.message).join(" ");
      if (place.textContent !== text) place.textContent = text;
      place.hidden = !mine.length;
    }
    for (const place of form.querySelectorAll("[data-tree]")) {
      const tree = found.trees[place.dataset.tree] ?? "";
      if (place.dataset.now !== tree) place.innerHTML = place.dataset.now = tree;
    }
    form.querySelector("[data-preview]").innerHTML = found.preview;
  };
  let timer = 0;
  const later = () => {
    clearTimeout(timer);
    timer = setTimeout(check, 350);
  };
  form.addEventListener("input", (event) => {
    const mark = event.target.closest(".column, .k")?.querySelector("[data-proposal]");
    if (mark) mark.hidden = true;
    if (event.target.type !== "file") later();
  });
  form.addEventListener("change", async (event) => {
    const input = event.target;
    if (input.type !== "file" || !input.files.length) return;
    const name = encodeURIComponent(input.files[0].name);
    await api(`/columns/${input.dataset.hierarchy}/hierarchy?name=${name}`, { method: "PUT", body: input.files[0] });
    check();
  });
}

// A sign of life, so that the files of an open page are kept

if (page.case) setInterval(() => api("/alive").catch(() => {}), 60_000);
