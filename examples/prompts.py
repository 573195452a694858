"""Which prompt, or model, for a feature that an LLM does: two experiments on the same calls.

- `…-quality`: four arms, each a model with a prompt, as the arm's `value`: what to call is configured in the experiment, and
  changes without a deployment. Its reward is quality minus cost: a judge scores the answer between 0 and 1, later and in a job of
  its own, and the dollars of the call are taken off, at what a point of quality is worth. So it is a `real` reward.
- `…-latency`: where to send the calls, with the seconds they took as the reward and the goal `minimize`.
- A call that failed has no quality: its assignment is voided, and is no evidence for or against its prompt.
- The judge does not always answer. Its silence does not depend on the quality, so `expiry` drops such an assignment
  (`reward: null`) instead of counting it as bad.

The model, its price and the judge are simulated, so that this runs offline; `call_model` and `judge` are what you replace.
"""

from __future__ import annotations

import os
import random
import time
from dataclasses import dataclass
from typing import Any

from bestarm import Assignment, Client

VARIANTS: dict[str, dict[str, Any]] = {
    "small-terse": {"model": "small", "prompt": "Answer in one sentence: {question}"},
    "small-steps": {"model": "small", "prompt": "Think step by step, then answer: {question}"},
    "large-terse": {"model": "large", "prompt": "Answer in one sentence: {question}"},
    "large-steps": {"model": "large", "prompt": "Think step by step, then answer: {question}"},
}
REGIONS = {"near": 0.3, "far": 0.8}
DOLLARS_A_POINT = 0.05
_QUALITY = {("small", False): 0.35, ("small", True): 0.75, ("large", False): 0.6, ("large", True): 0.85}
_DOLLARS = {("small", False): 0.001, ("small", True): 0.002, ("large", False): 0.008, ("large", True): 0.02}
_CALLS = 160
_FAILED, _UNJUDGED = 0.03, 0.1


@dataclass(frozen=True)
class Answer:
    """What a model said, and what that took."""

    text: str
    quality: float
    """Only the simulated judge knows it."""
    dollars: float
    seconds: float


def call_model(model: str, prompt: str, region: str, luck: random.Random) -> Answer:
    """A simulated model: better with a longer prompt, and dearer. It fails now and then."""
    if luck.random() < _FAILED:
        raise ConnectionError("The model is overloaded.")
    kind = (model, "step by step" in prompt)
    return Answer("…", _QUALITY[kind] + luck.uniform(-0.15, 0.15), _DOLLARS[kind], REGIONS[region] * luck.uniform(0.7, 1.3))


def judge(answer: Answer, luck: random.Random) -> float | None:
    """A simulated judge: the quality, or None if it had no time."""
    return None if luck.random() < _UNJUDGED else answer.quality


class Feature:
    """The feature as users meet it, and the queue of its judge."""

    def __init__(self, client: Client, name: str, luck: random.Random) -> None:
        self.client, self.luck = client, luck
        self.quality, self.latency = f"{name}-quality", f"{name}-latency"
        self.to_judge: list[tuple[Assignment, Answer]] = []
        """In a product, rows of a table: the id of an assignment is all that has to be kept."""

    def create(self) -> None:
        """Both experiments."""
        arms = [{"key": key, "value": value} for key, value in VARIANTS.items()]
        window = {"after_seconds": 3600, "reward": None}
        self.client.create(self.quality, arms, reward={"kind": "real", "goal": "maximize"}, expiry=window)
        self.client.create(self.latency, list(REGIONS), reward={"kind": "real", "goal": "minimize"}, expiry=window)

    def answer(self, question: str) -> str:
        """One call: a variant, a region; the latency is known at once, the quality is not."""
        fallback = next(iter(VARIANTS))
        variant = self.client.assign(self.quality, fallback=fallback, fallback_value=VARIANTS[fallback])
        region = self.client.assign(self.latency, fallback="near")
        prompt = variant.value["prompt"].format(question=question)
        try:
            answer = call_model(variant.value["model"], prompt, region.arm, self.luck)
        except ConnectionError:
            self.client.void(variant)
            self.client.void(region)
            return "Please try again."
        self.client.reward_later(region, answer.seconds)
        self.to_judge.append((variant, answer))
        return answer.text

    def judge_all(self) -> None:
        """The job that runs later: scores become rewards."""
        for variant, answer in self.to_judge:
            if (score := judge(answer, self.luck)) is not None:
                self.client.reward_later(variant, score - answer.dollars / DOLLARS_A_POINT)
        self.to_judge.clear()


def main() -> None:
    """Users call the feature, the judge comes every 20 calls; then say what is best."""
    url, key = os.environ.get("BESTARM_URL", "http://127.0.0.1:8000"), os.environ.get("BESTARM_KEY")
    name = os.environ.get("BESTARM_EXPERIMENT", f"prompts-{time.time_ns()}")
    with Client(url, key=key) as client:
        feature = Feature(client, name, random.Random(1))
        feature.create()
        for call in range(1, _CALLS + 1):
            feature.answer(f"What is {call} + {call}?")
            if call % 20 == 0:
                feature.judge_all()
                client.flush()
        for experiment in (feature.quality, feature.latency):
            seen = client.recommendation(experiment)
            print(f"{experiment}: {seen.arm}, {seen.draws} draws, {seen.pending} pending. {seen.summary}")


if __name__ == "__main__":
    main()
