// How arms stand to each other, read from a recommendation.

export const nameOf = (one) => one.name || one.key || one.arm;

/** Arms by their keys, what is better by the goal, and where each stands. */
export function standing(experiment, recommendation) {
  const arms = new Map(recommendation.arms.map((arm) => [arm.arm, arm]));
  const sign = experiment.reward.goal === "minimize" ? -1 : 1;
  const named = (key) => (arms.has(key) ? nameOf(arms.get(key)) : key);
  const gain = (arm, other) => (arm?.mean == null || other?.mean == null ? null : sign * (arm.mean - other.mean));
  const worth = (arm) => (arm.mean === null ? -Infinity : sign * arm.mean);
  const active = recommendation.arms.filter((arm) => arm.status === "active");
  const ranked = active
    .map((arm, index) => ({ arm, index }))
    .sort((a, b) => compare(worth(b.arm), worth(a.arm)) || b.arm.observations - a.arm.observations || a.index - b.index)
    .map(({ arm }) => arm);
  return {
    arm: (key) => arms.get(key) ?? null,
    named,
    /** How much better the first mean is; negative where it is worse, null where one is not known. */
    gain,
    /** The active arms, best mean first. */
    ranked,
    sign,
    leader: arms.get(recommendation.arm) ?? null,
    runnerUp: arms.get(recommendation.runner_up) ?? null,
    control: arms.get(experiment.control) ?? null,
    /** The arm that one should take: none before it is decided. */
    recommended: recommendation.verdict.state === "decided" ? recommendation.verdict.arm : null,
    /** Arms of which it is shown that another one is better. */
    shownWorse: active.filter((arm) => arm.evidence === 1 || arm.harmful),
    harmful: active.filter((arm) => arm.harmful),
  };
}

export const compare = (a, b) => (a === b ? 0 : a < b ? -1 : 1);

/** Do the intervals of two arms overlap? */
export const overlap = (a, b) => !!a?.interval && !!b?.interval && a.interval[0] <= b.interval[1] && b.interval[0] <= a.interval[1];

/** A lift in the goal's direction is a gain; words such as +5.3 points, with its interval and its ratio. */
export function liftWords(lift, write) {
  return {
    size: write.difference(lift.difference),
    interval: lift.difference_interval ? write.differences(lift.difference_interval) : null,
    ratio: lift.ratio,
    ratioInterval: lift.ratio_interval,
  };
}
