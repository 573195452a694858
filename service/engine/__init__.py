"""The machine that makes commands durable together: a queue, a writer, and the experiments in memory."""
