"""Small pages that need nothing else: no script, one style that the policy names by its digest."""

import base64
import hashlib
import html

_STYLE = (
    ":root{color-scheme:light dark}"
    "body{font:16px/1.6 system-ui,sans-serif;max-width:52rem;margin:3rem auto;padding:0 1rem;overflow-wrap:anywhere}"
    "h1{font-size:1.5rem}code,pre{font:14px/1.5 ui-monospace,monospace}"
    "pre{padding:.8rem 1rem;border:1px solid #8886;border-radius:.5rem;overflow-x:auto}"
    "td{padding:.2rem .8rem .2rem 0;vertical-align:top}"
)
_DIGEST = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
POLICY = (
    f"default-src 'none'; style-src 'sha256-{_DIGEST}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def plain_page(title: str, body: str) -> str:
    """A page around a body that is HTML already; send it with POLICY."""
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(title)}</title><style>{_STYLE}</style><body><main>{body}</main>"
    )


def refusal_page(status: int, message: str) -> str:
    """What a person sees who opened the page in a browser and was not let in: why, and what to do."""
    how = _HOW_TO_GET_IN if status == 401 else ""
    return plain_page("Windlass", f"<h1>Windlass</h1><p>{html.escape(message)}</p>{how}")


# A browser leaves the cookie out when a link on another site led here: then following a link of ours is enough.
_HOW_TO_GET_IN = (
    "<p>If this browser was let in before, <a href=/>open the page again</a>. Otherwise ask for a link in a terminal on"
    " the machine the server runs on, and open it here. It works once, within five minutes:</p>"
    "<pre>windlass pair</pre>"
)
