"""The TLS settings of the HTTP connections to servers."""

from __future__ import annotations

import functools
import ssl
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agents_tools.mcp.config import MCPServerConfig

__all__ = ["tls_settings"]


def tls_settings(httpx: Any, config: MCPServerConfig) -> ssl.SSLContext | bool:
    """Return the value of the option `verify` of the HTTP client.

    Args:
        httpx: The HTTP library of the installed SDK.
        config: The configuration of the server.

    Raises:
        ValueError: A file cannot be read, or contains no certificate.
    """
    verify, cert = config.verify, config.cert
    if isinstance(verify, bool) and cert is None:
        return _default_context(httpx) if verify else False
    context = (
        _context_of(verify) if isinstance(verify, str) else httpx.create_ssl_context(verify=verify)
    )
    if cert is not None:
        files = (cert,) if isinstance(cert, str) else cert
        try:
            context.load_cert_chain(*files)
        except OSError as error:
            message = f"the client certificate {files[0]} cannot be used: {_reason(error)}"
            raise ValueError(message) from error
    return context


@functools.cache
def _default_context(httpx: Any) -> ssl.SSLContext:
    """Return the context of all connections without settings: loading the authorities is slow."""
    context: ssl.SSLContext = httpx.create_ssl_context()
    return context


def _context_of(path: str) -> ssl.SSLContext:
    """Return a context that trusts the authorities in a file or folder only."""
    try:
        if Path(path).is_dir():
            return ssl.create_default_context(capath=path)
        return ssl.create_default_context(cafile=path)
    except OSError as error:
        message = f"the certificates in {path} cannot be used: {_reason(error)}"
        raise ValueError(message) from error


def _reason(error: OSError) -> str:
    return error.strerror or str(error)
