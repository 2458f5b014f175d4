"""The demo: one elastic cycle between real edge agents and real hubs, on real episodes."""

from __future__ import annotations

from crystalmem.demo.run import DemoOptions, run_demo

__all__ = ["DemoOptions", "run_demo"]
