"""Every bound of the system: the unit is in the name, the reason is beside it.

A default must suit a laptop. What an operator may change is in the config; what is here is what the code relies on.
"""

KIB = 1024
MIB = 1024 * 1024

# -- requests ---------------------------------------------------------------------------------------------------------
REQUEST_BODY_BYTES = 16 * MIB  # a prompt with a few screenshots; the rest belongs in a file
REQUEST_HEADER_BYTES = 32 * KIB  # cookies and a token fit ten times over
REQUEST_HEADER_COUNT = 100  # more is an attack or a broken proxy
REQUEST_HEADER_SECONDS = 10.0  # a client that takes longer to say what it wants is holding a socket for nothing
REQUEST_BODY_SECONDS = 60.0  # 16 MiB over a poor phone link
CONNECTIONS = 2_000  # below the usual descriptor limit, with room for the database and tools
STREAMS_PER_CLIENT = 16  # eight tabs and their reconnects
AUTH_FAILURES_PER_PEER = 100  # in one window; guessing 256 bits is hopeless, but a loop should not cost CPU either
AUTH_FAILURE_WINDOW_SECONDS = 60.0
TICKET_SECONDS = 300  # long enough to walk to the phone
TICKETS = 100  # outstanding at once
PROMPT_CHARACTERS = 1_000_000  # a context window; more is a file
TITLE_CHARACTERS = 500  # a title, not a document
PATH_CHARACTERS = 4_096  # PATH_MAX
ID_CHARACTERS = 128  # longer than any id we make
MESSAGES_PER_PAGE = 10_000  # asked for with ?limit=
RUNS_PER_PAGE = 1_000
RUNS_PER_PAGE_DEFAULT = 100

# -- runs -------------------------------------------------------------------------------------------------------------
QUEUE_PER_SESSION = 100  # accepted and not ended; a person never queues more, a loop does
SESSIONS_PER_WORKSPACE = 10_000  # their ids are in memory while a workspace is open (about 1 KB each)
OPEN_WORKSPACES = 1_000
STOP_ASK_SECONDS = 3.0  # what a run is given to stop by itself after a cancel
STOP_ABORT_SECONDS = (
    3.0  # and what it is given after it was cancelled again; then it is abandoned and its end written
)
DRAIN_SECONDS = 10.0  # active runs at SIGTERM
RUN_STEPS = 100  # model calls in one run; an agent that needs more is going in circles
RUN_SECONDS = 6 * 3600.0  # a run left alone over lunch is fine; one of days is a bug
IDENTICAL_STEPS = 4  # the same tool calls with the same results: it is stuck
TOOL_CALLS_PER_STEP = 64  # a model that asks for more is malfunctioning
TOOL_ARGUMENTS_BYTES = 1 * MIB  # of JSON, of one call
TOOL_ARGUMENTS_DEPTH = 100
MESSAGE_BYTES = 16 * MIB  # text of one assistant message
MODEL_RETRIES = 4
MODEL_RETRY_BASE_SECONDS = 0.5
MODEL_RETRY_MAX_SECONDS = 30.0
MODEL_CONNECT_SECONDS = 30.0
MODEL_SILENCE_SECONDS = 300.0  # reasoning models think for minutes without a byte
MODEL_LINE_BYTES = 16 * MIB  # one SSE line of a provider

# -- permissions ------------------------------------------------------------------------------------------------------
PENDING_PERMISSIONS = 1_000  # in a workspace; more than people can answer
GRANTS = 10_000  # remembered answers in a workspace
UNATTENDED_DENY_SECONDS = 600.0  # a server that follows its clients: nobody came back in ten minutes

# -- lifetimes --------------------------------------------------------------------------------------------------------
CREATE_GRACE_SECONDS = 30.0  # from create to the first stream
DETACH_GRACE_SECONDS = 10.0  # a network blip
LINGER_SECONDS = 60.0  # an --exit-when-idle server after its last client
RETIRED_SECONDS = 3600.0  # how long a goodbye is remembered: longer than any late create can be on its way
RETIRED_CLIENTS = 10_000
CLIENTS_PER_WORKSPACE = 1_000

# -- journal and streams ----------------------------------------------------------------------------------------------
TAIL_BYTES = 4 * MIB  # of encoded events kept in memory for a workspace; further behind is read from disk
STREAM_WRITE_BYTES = 64 * KIB  # one write to one reader; a phone asleep must cost less than a photo
STREAM_YIELD_EVENTS = 64  # a reader that catches up lets the others run this often
PAGE_FACTS = 500  # facts read from disk at once for a reader that is behind
PAGE_BYTES = 1 * MIB
HEARTBEAT_SECONDS = 10.0  # the wire promises 15
DELTA_FLUSH_SECONDS = 0.010  # while a workspace is busy, text is published this often
WHOLE_MESSAGE_SECONDS = 1 / 30  # a reader without deltas gets at most 30 flushes a second
WHOLE_MESSAGE_BYTES_PER_SECOND = 512 * KIB  # and fewer the longer the message is, so that bytes stay bounded
CHECKPOINT_SECONDS = 1.0  # what a crash may lose of a message that is being written
STAGED_BYTES = 64 * MIB  # facts waiting for the disk; beyond this new work is refused
COMMIT_FACTS = 5_000  # in one transaction, so that one commit never takes seconds
RETENTION_DAYS = 30
RETENTION_MB = 512
RETENTION_SECONDS = 3600.0  # how often the log is trimmed
TRIM_FACTS = 2_000  # removed in one commit, so that trimming delays nobody

# -- tools and processes ----------------------------------------------------------------------------------------------
TOOL_OUTPUT_CHARACTERS = 30_000  # what a model is shown of a tool's output
FILE_READ_BYTES = 5 * MIB
FILE_WRITE_BYTES = 5 * MIB
DIRECTORY_ENTRIES = 1_000
BASH_OUTPUT_BYTES = 1 * MIB  # kept while a command runs; the middle of more is dropped, and said
BASH_SECONDS = 120.0
BASH_MAX_SECONDS = 600.0
KILL_GRACE_SECONDS = 2.0  # between SIGTERM and SIGKILL; under STOP_ASK_SECONDS so that a cancel is over in time
GUARDIAN_SPAWN_SECONDS = 10.0
GUARDIAN_MESSAGE_BYTES = 1 * MIB
PROCESSES = 200  # tools running at once
