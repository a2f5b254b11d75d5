"""Neighbours: their tasks as our environments, and our environments in their trainers.

Nothing of a neighbour is imported before it is asked for; each is an optional extra.
"""

from .judging import RewardFault
from .nemo_gym import nemo_gym_server, to_nemo_gym
from .openenv import from_openenv
from .openrlhf import openrlhf_reward, to_openrlhf
from .prime_verifiers import from_verifiers, to_verifiers
from .reasoning_gym import from_reasoning_gym, register_reasoning_gym, rulings
from .verl import to_verl, verl_reward
from .verl_agent import verl_agent_loop

__all__ = [
    "RewardFault",
    "from_openenv",
    "from_reasoning_gym",
    "from_verifiers",
    "nemo_gym_server",
    "openrlhf_reward",
    "register_reasoning_gym",
    "rulings",
    "to_nemo_gym",
    "to_openrlhf",
    "to_verifiers",
    "to_verl",
    "verl_agent_loop",
    "verl_reward",
]
