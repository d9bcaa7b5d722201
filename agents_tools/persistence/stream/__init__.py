"""The event stream of a session. It numbers and stores events, and delivers them to readers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agents_tools._package import lazy_exports

if TYPE_CHECKING:
    from agents_tools.persistence.stream.follower import (
        Follower as Follower,
    )
    from agents_tools.persistence.stream.log import (
        Policy as Policy,
    )
    from agents_tools.persistence.stream.size_limit import (
        LEFT_OUT as LEFT_OUT,
    )
    from agents_tools.persistence.stream.stream import (
        EventStream as EventStream,
    )
    from agents_tools.persistence.stream.subscriber import (
        EventStreamSubscriber as EventStreamSubscriber,
    )
    from agents_tools.persistence.stream.subscription import (
        Subscription as Subscription,
    )

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "follower": ("Follower",),
        "log": ("Policy",),
        "size_limit": ("LEFT_OUT",),
        "stream": ("EventStream",),
        "subscriber": ("EventStreamSubscriber",),
        "subscription": ("Subscription",),
    },
)
