"""Train with TRL's GRPOTrainer on an Assay environment; a tiny model stands in for yours."""

# --8<-- README
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import GRPOConfig, GRPOTrainer

from assay import TRLSpec
from assay.grpo import tiny_model

directory = tiny_model("runs/trl/model")  # or the directory of any causal LM
spec = TRLSpec("assay/Arithmetic-v1", size=256, env_kwargs={"digits": 1})
trainer = GRPOTrainer(
    AutoModelForCausalLM.from_pretrained(directory),
    args=GRPOConfig(
        "runs/trl", max_steps=3, max_completion_length=4, logging_steps=1, use_cpu=True, bf16=False
    ),
    processing_class=AutoTokenizer.from_pretrained(directory),
    **spec.kwargs(),
)
trainer.train()
# --8<--
for log in trainer.state.log_history[:3]:
    print({key: log[key] for key in ("reward", "reward_std", "parts/accuracy")})
