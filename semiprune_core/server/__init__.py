"""Our own doors beside the pages: images, uploads, downloads, label events. Plain Starlette, no Streamlit."""

from semiprune_core.server.access import Access, browser_token
from semiprune_core.server.routes import studio_routes

__all__ = ["Access", "browser_token", "studio_routes"]
