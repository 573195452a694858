"""The limits of the API, each with its reason. Schemas, settings, connections and the documentation take them from here."""

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
# A page speaks for one visitor: many items at once would be a way past the rate of its key, which everybody can read.
MOST_PUBLIC_ITEMS = 100
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
# Read and validated, a body takes up to fifteen times its size; so many are handled at a time, the others wait.
MOST_LARGE_BODIES = 2
# All bodies that a worker holds or waits for, together, and those of one key; but for the small ones, which an upload that
# never ends must not shut out: with them each connection takes what it may take for a head.
MOST_HELD_BODY_BYTES = 128 * 1024 * 1024
MOST_HELD_BODY_BYTES_OF_KEY = 64 * 1024 * 1024
SMALL_BODY_BYTES = 32 * 1024
# Lists and objects of a body above 256 KiB, and names of one object in it: the parser makes so many in some 30 ms, and yields
# to nobody. 10,000 arms or items have 25 each, and no value that is small enough has so many names.
MOST_JSON_CONTAINERS = 250_000
MOST_JSON_NAMES = 50_000
# Deep enough for any value, and well below where Python's own recursion ends.
DEEPEST_JSON = 128
# Flags that a page evaluates at once: each may be a draw, and all are answered together.
MOST_BULK_FLAGS = 100
# A forecast plays the experiment on 64 times: half a second of processor for so many arms.
MOST_FORECAST_ARMS = 100
# "Probably never" is a median forecast beyond both of these. Equal arms ask for 40 (two of them) to 140 times (ten) the rewards
# there are, however many: only a gap that chance has hidden so far can be found. Unequal ones may look alike at first, hence the
# second: 10% against 11% in five arms is shown within 200,000 draws, and hardly anybody waits for three million.
NEVER_TIMES, NEVER_DRAWS = 20, 3_000_000
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
# Events of the audit log that one page of it looks through for those of some kinds.
MOST_VISITED_EVENTS = 20_000
# Messages of a webhook that one page of their list looks through for those of a status.
MOST_VISITED_DELIVERIES = 20_000
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
# Keys of the API are named by random hexadecimal digits.
API_KEY_ID_PATTERN = "key_[0-9a-f]{20}"
# The experiments that a key is for: their keys, or patterns of them with stars.
API_KEY_EXPERIMENT_PATTERN = r"[a-z0-9*][a-z0-9._*-]{0,63}"
# A page's origin as browsers send it, in lower case; never `null`, which is every sandboxed page's.
ORIGIN_PATTERN = r"https?://([a-z0-9._-]{1,253}|\[[0-9a-f:.]{2,45}\])(:[0-9]{1,5})?"
# A key that is for more experiments than this is for a pattern of them.
MOST_KEY_EXPERIMENTS = 100
# The pages of one product.
MOST_KEY_ORIGINS = 20
# The last microsecond that has a date: answers tell times as such.
LAST_MOMENT = 253_402_300_799_999_999
# Labels are shown in tables and with every entry of the audit log.
LONGEST_LABEL = 100
# Longer than this a rotated key is not being replaced: it is kept.
LONGEST_GRACE_SECONDS = 30 * 86_400
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
# A working day: whoever leaves a browser open has to come back with the key.
SESSION_SECONDS = 12 * 3600
# Sessions of one key or account at a time: people have a few browsers, and every worker has each session in memory. One more ends
# the oldest.
MOST_SESSIONS = 100
# A stream holds a connection and is sent every change: a key whose pages watch more than this has lost count of them.
MOST_STREAMS_OF_KEY = 100
# Half a second is enough to send one change to so many; and they leave most connections of the worker to others.
MOST_STREAMS = 2_000
# Every visitor of a page listens with the page's one key, so these count together. Each is sent a line at most once a second, and
# all wait for the same fingerprint; beside as many other streams they leave half of the worker's connections to requests.
MOST_FLAG_STREAMS = 2_000
# A load that has not been at its experiment for so long was killed: what there is of it is removed. One that lives says so every
# few seconds, and finds out if it was taken for dead.
LOAD_ABANDONED_SECONDS = 600
# A line of a dump: the largest is the event that created an experiment, with 8 MiB of values and what JSON adds to them.
MOST_DUMP_LINE_BYTES = 64 * 1024 * 1024
# What a compressed part of a dump, a snapshot or a stored answer, may become: far more than either is, and no danger.
MOST_DECOMPRESSED_BYTES = 64 * 1024 * 1024
# An observation of the longest names takes less, however it is escaped: what is longer is no line of observations.
LONGEST_LINE_BYTES = 16 * 1024
# So much of a stream of observations is told at once: a few thousand lines, which take the lane some tenths of a second.
STREAMED_PART_BYTES = 128 * 1024
# And what has arrived is told after so long, whatever more may come: what was sent is soon durable.
STREAMED_PART_SECONDS = 1.0
# Streams of observations that a worker takes at once: they share one lane, and each holds a connection for as long as it likes.
MOST_OBSERVATION_STREAMS = 8
MOST_OBSERVATION_STREAMS_OF_KEY = 4
# Lines that an import names as refused: whoever has more has one mistake many times.
MOST_NAMED_LINES = 100
# The numbers of a sequence are kept in 64 bits.
LARGEST_SEQUENCE = 2**63 - 2
# An export is a process and a connection to the database: some at once, and not all for one key.
MOST_EXPORTS = 4
MOST_EXPORTS_OF_KEY = 2
# It has its place for no longer than this: who takes longer goes on with another export, after= the last row.
LONGEST_EXPORT_SECONDS = 3_600.0
# What the settings say unless they are set (docs/settings.md): connections, and how long a client may take to do its part.
# Each connection is a file and some memory of the worker.
MOST_CONNECTIONS = 8_192
# A group is written in milliseconds, a batch of thousands in a second. A database that takes longer may never answer: whoever
# waits is told so, in less time than a proxy gives up after.
STATEMENT_SECONDS = 15.0
# Everything else, of which a large read takes longest.
READ_SECONDS = 60.0
# Workers that take turns at an experiment wait for tenths of a second. Whoever holds its row longer is no worker, or a dead one.
LOCK_SECONDS = 5.0
# A worker on a host with far too much to do may be silent for seconds and is well; its callers have given up by then.
HANG_SECONDS = 15.0
# Half-sent requests must not use up connections: the first head counts from connecting on.
HEAD_SECONDS = 10.0
# 16 MiB take some time on a slow line; as long may a client take nothing of an answer that waits to be read.
BODY_SECONDS = 60.0
# Longer than load balancers keep their idle connections (often 60 s): they close them, not we.
KEEP_ALIVE_SECONDS = 75.0
# Within the 20 s that a stop takes at most, some are left for the requests themselves.
MOST_DRAIN_SECONDS = 15.0
# A head is kept in memory before anybody has looked at it.
MOST_HEAD_BYTES = 32 * 1024
# As many as Apache takes. Kept in memory, a short line takes twenty times its bytes.
MOST_HEADERS = 100
# Requests that wait for their transaction in one worker: a second or two of work, and nobody should wait longer.
MOST_QUEUED = 4_096
# What a key may send at once: a page that loads, a backend that starts.
RATE_BURST = 100
# A public key is everybody's who reads the page: so many asks a second are a busy shop, and little for the service.
PUBLIC_RATE = 50.0
# Each event is held against every webhook, and a worker has them all in mind.
MOST_WEBHOOKS = 100
WEBHOOK_ID_PATTERN = "wh_[0-9a-f]{20}"
MESSAGE_ID_PATTERN = "msg_[0-9a-f]{20}"
# Slack's and Teams' addresses have some 200 characters, signed ones of clouds up to 2,000.
LONGEST_WEBHOOK_URL = 2_048
# A webhook that is for more experiments than this is for a pattern of them.
MOST_WEBHOOK_EXPERIMENTS = 100
# Other systems wait no longer for an answer that says nothing but "taken".
WEBHOOK_TIMEOUT_SECONDS = 10.0
# The first pause after a failure; each later one is four times as long, up to a day.
WEBHOOK_RETRY_SECONDS = 5.0
# Messages on their way from one worker, and of those to one endpoint: one that hangs must not hold up the others.
MOST_DELIVERIES_AT_ONCE = 16
MOST_DELIVERIES_TO_ONE = 4
# Tests of webhooks that wait in one worker: one is sent at a time, and may take as long as an endpoint may.
MOST_WAITING_TESTS = 4
# As much of an answer is read as tells that it is whole, where it is short; nobody looks at it.
MOST_ANSWER_BYTES = 4 * 1024
# Events of one experiment that become messages in one transaction.
MOST_EVENTS_AT_ONCE = 100
# What was delivered, or waits for an endpoint that stays disabled, is kept for a month.
DELIVERIES_KEPT_DAYS = 30
# A change of the leader is told once it has had so long to settle (service/domain/notices.py).
NOTICE_SETTLE_SECONDS = 60.0
# Arms in one note of drift: it is a line for people, and all of an experiment may drift at once.
MOST_NOTICED_ARMS = 100
# The summary in a message: a few sentences, and with many names of arms more of them than anybody reads.
LONGEST_MESSAGE_SUMMARY = 2_000
