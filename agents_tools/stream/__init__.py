"""The hub of a session: what is published is numbered, kept and handed to everybody who reads."""

from __future__ import annotations

from agents_tools.stream._bounds import LEFT_OUT
from agents_tools.stream._follower import Follower
from agents_tools.stream._log import Policy
from agents_tools.stream._stream import EventStream
from agents_tools.stream._subscriber import EventStreamSubscriber
from agents_tools.stream._subscription import Subscription

__all__ = ["LEFT_OUT", "EventStream", "EventStreamSubscriber", "Follower", "Policy", "Subscription"]
