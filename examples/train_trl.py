"""Train with TRL's GRPOTrainer on an Assay environment; a tiny model stands in for yours."""

# --8<-- README
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import GRPOConfig, GRPOTrainer

from assay import Task, TRLSpec, environment
from assay.grpo import tiny_model


@environment("me/Digits-v0", rubric=lambda reply, _: sum(map(str.isdigit, reply)) / 8)
def digits(rng):
    """Write eight digits."""
    return Task(f"{rng.integers(1000)}: ", reference="")


directory = tiny_model("runs/trl/model")  # or the directory of any causal LM
settings = {"learning_rate": 3e-3, "max_steps": 30, "max_completion_length": 8, "logging_steps": 5}
settings |= {"per_device_train_batch_size": 64, "num_generations": 8}
trainer = GRPOTrainer(
    AutoModelForCausalLM.from_pretrained(directory),
    args=GRPOConfig("runs/trl", **settings, use_cpu=True, bf16=False),
    processing_class=AutoTokenizer.from_pretrained(directory),
    **TRLSpec("me/Digits-v0", size=256).kwargs(),
)
trainer.train()
print([float(log["reward"]) for log in trainer.state.log_history if "reward" in log])
# --8<--
rewards = [float(log["reward"]) for log in trainer.state.log_history if "reward" in log]
assert rewards[-1] > rewards[0] + 0.2
