"""The tools of the studio. The web workers and the queue workers import the same file."""

from __future__ import annotations

import asyncio

from agents_tools import ToolAnnotations, function_tool, progress


@function_tool(annotations=ToolAnnotations(idempotentHint=True))
async def render(scene: str, frames: int = 3) -> str:
    """Render a scene.

    Args:
        scene: The name of the scene.
        frames: The number of frames.
    """
    for frame in range(1, frames + 1):
        await asyncio.sleep(0.1)
        progress(frame, frames, f"frame {frame}")
    return f"{scene}.mp4"


@function_tool
async def publish(file: str) -> str:
    """Publish a file.

    Args:
        file: The name of the file.
    """
    return f"{file} is online"


TOOLS = [render, publish]
