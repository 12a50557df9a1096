"""The pages of somebody who is not in yet: a field for the token, for name and password, or for a first password."""

from __future__ import annotations

import html
import re

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>SemiPrune Studio</title>
<link rel="icon" href="data:,">
<style>
  :root { color-scheme: light dark; --back: #fff; --text: #1c2526; --quiet: #566465; --line: #c9d0d0; --field: #fff;
    --accent: #0f766e; --bad: #b42318; }
  @media (prefers-color-scheme: dark) { :root { --back: #121616; --text: #e6eaea; --quiet: #a3b0b0; --line: #4a5656;
    --field: #1c2222; --accent: #14867b; --bad: #fda29b; } }
  body { margin: 0; min-height: 100vh; display: grid; place-items: center; background: var(--back); color: var(--text);
    font: 15px/1.55 Inter, system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
  main { box-sizing: border-box; width: 100%; max-width: 30rem; padding: 2rem 1.5rem 4rem; }
  h1 { font-size: 1.75rem; font-weight: 650; letter-spacing: -0.01em; margin: 0 0 0.75rem; }
  p { margin: 0 0 1rem; }
  .quiet { color: var(--quiet); font-size: 0.9rem; }
  .bad { color: var(--bad); }
  label { display: block; font-size: 0.9rem; margin: 1.5rem 0 0.35rem; }
  form div { display: flex; gap: 0.5rem; }
  form.rows label { margin-top: 1rem; }
  form.rows input { width: 100%; box-sizing: border-box; }
  form.rows button { margin-top: 1.25rem; }
  input, button { font: inherit; border-radius: 0.5rem; padding: 0.5rem 0.75rem; }
  input { flex: 1; min-width: 0; background: var(--field); color: inherit; border: 1px solid var(--line); }
  button { border: 0; background: var(--accent); color: #fff; font-weight: 600; padding-inline: 1.25rem;
    cursor: pointer; }
  input:focus-visible, button:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
  form + p { margin-top: 1.25rem; }
  code { font-size: 0.95em; }
</style>
</head>
<body>
<main>
  <h1>SemiPrune Studio</h1>
{main}
</main>
</body>
</html>
"""

TOKEN_FORM = """  <p>Open the link that was printed where the app was started, or paste it here.</p>
  <form method="post">
    <label for="token">Link or token</label>
    <div>
      <input id="token" name="token" type="password" autocomplete="off" required autofocus>
      <button>Open</button>
    </div>
  </form>
  {trouble}
  <p class="quiet">The token is the part of the link after <code>token=</code>. This browser will be remembered.</p>"""
ACCOUNT_FORM = """  <form method="post" class="rows">
    <label for="name">Name</label>
    <input id="name" name="name" autocomplete="username" maxlength="64" value="{name}" required autofocus>
    <label for="password">Password</label>
    <input id="password" name="password" type="password" autocomplete="current-password" required>
    <button>Log in</button>
  </form>
  {trouble}
  <p class="quiet">This app is made for a team whose members trust each other. Ask an admin for an account, or for a new
  invite if you have forgotten your password.</p>"""
INVITE_FORM = """  <p>Welcome, {name}. Choose a password.</p>
  <form method="post" class="rows">
    <input type="hidden" name="invite" value="{code}">
    <input type="hidden" name="username" autocomplete="username" value="{id}">
    <label for="password">Password</label>
    <input id="password" name="password" type="password" autocomplete="new-password" required autofocus>
    <label for="again">Once more</label>
    <input id="again" name="again" type="password" autocomplete="new-password" required>
    <button>Log in</button>
  </form>
  {trouble}
  <p class="quiet">At least 8 characters; a few words are easy to remember. You log in as <code>{id}</code>.</p>"""


def _page(form: str, trouble: str, **texts: str) -> str:
    """A form with its texts, each set as text, and what was wrong with the last try."""
    words = f'<p class="bad" role="alert">{html.escape(trouble)}</p>' if trouble else ""
    filled = {"trouble": words, **{name: html.escape(text, quote=True) for name, text in texts.items()}}
    return PAGE.replace("{main}", re.sub(r"\{(\w+)\}", lambda place: filled[place[1]], form))


def login_page(trouble: str) -> str:
    """Where a token is asked for; ``trouble`` says what was wrong with the last try."""
    return _page(TOKEN_FORM, trouble)


def account_page(trouble: str, name: str = "") -> str:
    """Where accounts log in; ``name`` is what was typed before."""
    return _page(ACCOUNT_FORM, trouble, name=name)


def invite_page(trouble: str, code: str, account_id: str, shown: str) -> str:
    """Where an invite becomes a password."""
    return _page(INVITE_FORM, trouble, name=shown, code=code, id=account_id)
