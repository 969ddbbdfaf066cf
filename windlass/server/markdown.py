"""Route: Markdown made into HTML that a page may show."""

from litestar import Router, post
from litestar.datastructures import State
from litestar.params import JSONBody

from windlass import limits
from windlass.errors import Invalid
from windlass.server.services import services_of
from windlass.wire.http import MarkdownHtml, MarkdownTexts


@post("/markdown", status_code=200)
async def render_markdown(state: State, data: JSONBody[MarkdownTexts]) -> MarkdownHtml:
    """Texts as HTML that is safe to put into a page: no scripts, styles or handlers, and nothing that is loaded."""
    if len(data.texts) > limits.MARKDOWN_TEXTS:
        raise Invalid(f"texts has more than {limits.MARKDOWN_TEXTS} texts. Send fewer at a time.")
    if sum(map(len, data.texts)) > limits.MARKDOWN_REQUEST_CHARACTERS:
        raise Invalid(f"texts has more than {limits.MARKDOWN_REQUEST_CHARACTERS} characters. Send fewer at a time.")
    rendered = services_of(state).rendered
    return MarkdownHtml([await rendered.html(text) for text in data.texts])


router = Router(path="/v1", route_handlers=[render_markdown], tags=["Page"])
