"""Train and evaluate agent programs through one OpenAI-compatible server.

A program finds the gateway by ``OPENAI_BASE_URL`` and ``OPENAI_API_KEY``; what the model samples
for it is kept as tokens, and :class:`AgentEnv` judges what comes of it. It needs the extras
``serve`` and ``train``.
"""

from __future__ import annotations

from .agent_env import AgentEnv
from .app import create_app, served
from .engine import ChatEngine, Engine, EngineError, Reply, Sampled, SampleRequest
from .episodes import Gateway, GatewayConfig, Session
from .turns import Branch, Turn, TurnTree
from .vllm_engine import ProxyEngine, VLLMEngine

__all__ = [
    "AgentEnv",
    "Branch",
    "ChatEngine",
    "Engine",
    "EngineError",
    "Gateway",
    "GatewayConfig",
    "ProxyEngine",
    "Reply",
    "SampleRequest",
    "Sampled",
    "Session",
    "Turn",
    "TurnTree",
    "VLLMEngine",
    "create_app",
    "served",
]
