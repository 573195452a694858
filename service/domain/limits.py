"""The limits of the API, each with its reason. Schemas, the fast path and the documentation take them from here."""

from __future__ import annotations

# Keys stand in paths, file names and metrics, and are compared by their bytes: few characters, and all in lower case.
KEY_PATTERN = "[a-z0-9][a-z0-9._-]{0,63}"
# A unit is an id of the caller's own: long enough for any e-mail address or hash, short enough for an index.
LONGEST_UNIT = 255
# As long as the draft standard for the header suggests, and as Stripe's.
LONGEST_IDEMPOTENCY_KEY = 255
# ETags of ours have less than 50 characters: a list of so many is none that somebody has seen.
LONGEST_IF_MATCH = 1_000
# A key that is repeated.
LONGEST_KEY = 64
# Observations have ids of the caller's own, as units are.
LONGEST_OBSERVATION_ID = 255
# Names are shown in tables and charts.
LONGEST_NAME = 255
# A description is a page at most.
LONGEST_DESCRIPTION = 10_000
# A decision among so many arms takes a few milliseconds (docs/decisions/0005).
MOST_ARMS = 10_000
# With one arm there is nothing to find out.
FEWEST_ARMS = 2
# A value travels with every answer.
MOST_VALUE_BYTES = 16 * 1024
# The values of an experiment live together in the memory of every worker.
MOST_VALUES_BYTES = 8 * 1024 * 1024
# A batch is one transaction, and others wait for it.
MOST_ITEMS = 10_000
# The largest reward whose exact sums stay small enough to keep.
LARGEST_REWARD = 1e100
# Seeds travel as JSON numbers, which are exact in every language up to here.
LARGEST_SEED = 2**53 - 1
# Ten years: beyond that a window is not one.
LONGEST_EXPIRY_SECONDS = 315_360_000
# Beyond it even a guard hardly helps a best arm with an unlucky start, and no error bound of ours holds (docs/decisions/0005).
LARGEST_SHARPNESS = 3.0
# A batch of Almost Tracking is planned at once and stored with its counts.
LARGEST_BATCH_SIZE = 1_000_000
# Far more than can be observed, and exact as a JSON number.
MOST_MIN_OBSERVATIONS = 10**15
# One request must not keep the event loop or the memory of a worker.
MOST_BODY_BYTES = 1024 * 1024
# Batches and new experiments, whose arms carry their values.
MOST_BATCH_BODY_BYTES = 16 * 1024 * 1024
# A body above this takes milliseconds to read: it is read beside the event loop.
LARGE_BODY_BYTES = 256 * 1024
# Read, a body can take thirty times its size; so many of them are read and handled at a time, the others wait.
MOST_LARGE_BODIES = 2
# All bodies that a worker holds or waits for, together.
MOST_HELD_BODY_BYTES = 128 * 1024 * 1024
# Deep enough for any value, and well below where Python's own recursion ends.
DEEPEST_JSON = 128
# A forecast plays the experiment on 64 times: half a second of processor for so many arms.
MOST_FORECAST_ARMS = 100
# Ten years, as with expiry: nobody waits longer.
MOST_FORECAST_DAYS = 3_650
# A plan plays an experiment from its first draw, a hundred times or more: a second of processor for so many arms.
MOST_PLANNED_ARMS = 100
# A page of a list is read whole.
LARGEST_PAGE = 1_000
# And ends early where it would be longer than this: a page is held in memory, and rendered while others wait.
MOST_PAGE_BYTES = 8 * 1024 * 1024
# Assignments that one page of their list looks through for those that match: about ten milliseconds.
MOST_VISITED_ASSIGNMENTS = 20_000
# Observations that one page of their list looks through for those of one arm: as long.
MOST_VISITED_OBSERVATIONS = 20_000
# Experiments that one page of their list looks through for a text, a tag or a time.
MOST_VISITED_EXPERIMENTS = 20_000
# Entries of the instance's log that one page looks through for those of a time.
MOST_VISITED_ENTRIES = 20_000
# Experiments on one page are listed with all their arms: as many together as the largest one alone may have.
MOST_ARMS_ON_PAGE = 10_000
# Values that a batch of asks may repeat, one for each assignment. Beyond it they are given once per arm.
MOST_REPEATED_VALUE_BYTES = 1024 * 1024
# Tags and owners are for finding experiments in a list.
MOST_TAGS = 20
LONGEST_OWNER = 100
# Assignments are named by a draw and a token, in hexadecimal digits (docs/decisions/0004).
ASSIGNMENT_ID_PATTERN = "asg_[0-9a-f]{27}"
# Points of the course: more than a picture can show.
MOST_POINTS = 1_000
# Points of the course times arms, in one answer of about 20 MB at most: with many arms there are fewer points.
MOST_COURSE_ENTRIES = 100_000
# A read of more arms than this takes the event loop longer than another request should wait: it runs in a lane.
FEW_ARMS = 100
# So do values of more than this together, and entries of a list beyond so many.
LARGE_VALUES_BYTES = 256 * 1024
FEW_ENTRIES = 100
# Draws of a batch, each with 100 more than the number of arms: beyond it the batch takes longer than 20 ms to decide.
MOST_QUICK_BATCH = 120_000
# Items of a batch of rewards or observations that are recorded in about as long.
MOST_QUICK_ITEMS = 1_000
# Findings that are kept at once: with many arms most of them fall within a few looks, and each is a row and an event.
MOST_FINDINGS_AT_ONCE = 100
# Expensive reads that wait for their turn in a lane: each may take a second, and nobody waits longer than half a minute.
MOST_WAITING_READS = 32
