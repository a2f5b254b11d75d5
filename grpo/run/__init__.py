"""What a run needs beside the learner: tasks, evaluation, checkpoints."""
