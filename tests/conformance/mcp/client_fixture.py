"""A client made with the library that does what a scenario of the conformance suite asks for.

The runner starts it as `python -m tests.conformance.mcp.client_fixture URL`, and names the scenario
and what it needs to know in the environment. Nothing is checked here: the runner's server does.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urljoin, urlsplit

import httpx2
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.auth.extensions.client_credentials import (
    ClientCredentialsOAuthProvider,
    PrivateKeyJWTOAuthProvider,
    SignedJWTParameters,
)
from mcp.client.auth.extensions.identity_assertion import IdentityAssertionOAuthProvider
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl

from agents_tools.mcp import MCPToolManager

if TYPE_CHECKING:
    from agents_tools import CallOutcome, FunctionTool
    from agents_tools.tool import Question

SERVER = "suite"
CALLBACK = "http://localhost:3000/callback"
CLIENT_METADATA = "https://conformance-test.local/client-metadata.json"
CALLS: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "tools_call": [("add_numbers", {"a": 5, "b": 3})],
    "json-schema-ref-no-deref": [],
}
"""What is called in scenarios that do not want each tool to be called once."""
UNFITTING = {"http-custom-headers"}
"""Scenarios whose calls do not fit the schemas of their tools."""
PATIENCE = 30
"""Seconds: many of these programs run at once."""


async def main(url: str) -> None:
    """Do what the scenario asks for."""
    scenario = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
    context: dict[str, Any] = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    auth = provider(scenario, url, context) if scenario.startswith("auth/") else None
    async with MCPToolManager(ask=answer) as manager:
        tools = await manager.add_server(
            SERVER,
            url=url,
            auth=auth,
            prefix=None,
            connect_timeout=PATIENCE,
            timeout=PATIENCE,
            validate_arguments=scenario not in UNFITTING,
        )
        by_name = {str(tool.origin.wire_name or tool.name): tool for tool in tools}
        print("tools:", *by_name, "left out:", manager.skipped, file=sys.stderr)  # noqa: T201
        for name, arguments in calls(scenario, context, by_name):
            outcome = await by_name[name].call(None, json.dumps(arguments))
            show(name, outcome)
        if scenario == "http-standard-headers":
            await look_around(manager)


def calls(
    scenario: str, context: dict[str, Any], tools: dict[str, FunctionTool[..., Any]]
) -> list[tuple[str, dict[str, Any]]]:
    """Return the tools to call, with their arguments."""
    if "toolCalls" in context:
        return [(call["name"], call["arguments"]) for call in context["toolCalls"]]
    if scenario in CALLS:
        return CALLS[scenario]
    if scenario == "json-schema-2020-12-preservation":
        focal, echo = tools
        return [(echo, {"schema": dict(tools[focal].json_schema)})]
    return [(name, sample_arguments(tool.json_schema)) for name, tool in tools.items()]


def sample_arguments(schema: Any) -> dict[str, Any]:
    """Return arguments that are valid for a simple schema."""
    values = {"string": "text", "integer": 1, "number": 1.5, "boolean": True, "object": {}}
    properties = schema.get("properties", {})
    return {name: values.get(properties[name].get("type")) for name in schema.get("required", ())}


async def look_around(manager: MCPToolManager) -> None:
    """Read the resources and prompts of a server."""
    for resource in await manager.list_resources(SERVER):
        await manager.read_resource(SERVER, resource["uri"])
    for prompt in await manager.list_prompts(SERVER):
        await manager.get_prompt(SERVER, prompt["name"])


def answer(question: Question) -> dict[str, Any]:
    """Accept every question, with the defaults of its fields."""
    properties = question.schema.get("properties", {})
    return {
        name: True
        for name, field in properties.items()
        if field.get("type") == "boolean" and "default" not in field
    }


def show(name: str, outcome: CallOutcome) -> None:
    """Write to the runner's log how a call ended."""
    print(name, outcome.status, str(outcome.output)[:200], file=sys.stderr)  # noqa: T201


# --- auth


def provider(scenario: str, url: str, context: dict[str, Any]) -> httpx2.Auth:
    """Return the provider of the SDK that a scenario tests."""
    storage = Storage()
    client_id, secret = context.get("client_id", ""), context.get("client_secret", "")
    if scenario == "auth/client-credentials-basic":
        return ClientCredentialsOAuthProvider(url, storage, client_id, secret)
    if scenario == "auth/client-credentials-jwt":
        signed = SignedJWTParameters(
            issuer=client_id,
            subject=client_id,
            signing_algorithm=context["signing_algorithm"],
            signing_key=context["private_key_pem"],
        )
        return PrivateKeyJWTOAuthProvider(
            url, storage, client_id, signed.create_assertion_provider()
        )
    if scenario == "auth/enterprise-managed-authorization":
        return identity_assertion(url, storage, context)
    if client_id and secret:
        storage.client = OAuthClientInformationFull(
            client_id=client_id,
            client_secret=secret,
            redirect_uris=[AnyUrl(CALLBACK)],
            issuer=context.get("issuer"),
            token_endpoint_auth_method="client_secret_basic",  # noqa: S106 - the name of a method
        )
    browser = Browser()
    return OAuthClientProvider(
        url,
        OAuthClientMetadata(
            client_name="conformance",
            redirect_uris=[AnyUrl(CALLBACK)],
            grant_types=["authorization_code", "refresh_token"],
            response_types=["code"],
        ),
        storage,
        redirect_handler=browser.open,
        callback_handler=browser.came_back,
        client_metadata_url=CLIENT_METADATA,
    )


def identity_assertion(url: str, storage: Storage, context: dict[str, Any]) -> httpx2.Auth:
    """Return the provider that accepts the assertion of the company's identity provider."""
    metadata = httpx2.get(
        urljoin(url, f"/.well-known/oauth-protected-resource{urlsplit(url).path}")
    )

    async def assertion(audience: str, resource: str) -> str:
        kind = "urn:ietf:params:oauth:token-type:"
        async with httpx2.AsyncClient() as http:
            response = await http.post(
                context["idp_token_endpoint"],
                data={
                    "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
                    "requested_token_type": f"{kind}id-jag",
                    "subject_token": context["idp_id_token"],
                    "subject_token_type": f"{kind}id_token",
                    "client_id": context["idp_client_id"],
                    "audience": audience,
                    "resource": resource,
                },
            )
        return str(response.raise_for_status().json()["access_token"])

    return IdentityAssertionOAuthProvider(
        url,
        storage,
        context["client_id"],
        context["client_secret"],
        issuer=metadata.raise_for_status().json()["authorization_servers"][0],
        assertion_provider=assertion,
        token_endpoint_auth_method="client_secret_basic",  # noqa: S106 - the name of a method
    )


class Storage:
    """Keeps tokens in memory, as the SDK asks for."""

    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None
        self.client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        """Return the tokens."""
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Keep the tokens."""
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """Return the registration of the client."""
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Keep what the client is registered as."""
        self.client = client_info


class Browser:
    """Somebody who agrees to everything at once."""

    def __init__(self) -> None:
        self._back = ""

    async def open(self, url: str) -> None:
        """Open a page, which sends the browser back."""
        async with httpx2.AsyncClient() as http:
            response = await http.get(url, follow_redirects=False)
        self._back = response.headers["location"]

    async def came_back(self) -> AuthorizationCodeResult:
        """Return the parameters of the address that the browser was redirected to."""
        said = {name: values[0] for name, values in parse_qs(urlsplit(self._back).query).items()}
        return AuthorizationCodeResult.model_validate(said)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[-1]))
