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
BROWSER_TOKENS = 50  # cookies that are valid; a person has fewer browsers, a loop of tickets has not
PROMPT_CHARACTERS = 1_000_000  # a context window; more is a file
TITLE_CHARACTERS = 500  # a title, not a document
FIRST_TITLE_CHARACTERS = 80  # of the first prompt, until someone names the session
PATH_CHARACTERS = 4_096  # PATH_MAX
ID_CHARACTERS = 128  # longer than any id we make
MESSAGES_PER_PAGE = 10_000  # asked for with ?limit=
RUNS_PER_PAGE = 1_000
RUNS_PER_PAGE_DEFAULT = 100

# -- runs -------------------------------------------------------------------------------------------------------------
RUN_PROMPT_CHARACTERS = 1_000  # of a prompt that a run repeats with each change once it has started
QUEUE_PER_SESSION = 100  # accepted and not ended; a person never queues more, a loop does
SESSIONS_PER_WORKSPACE = 10_000  # their ids are in memory while a workspace is open (about 1 KB each)
OPEN_WORKSPACES = 1_000
STOP_ASK_SECONDS = 3.0  # what a run is given to stop by itself after a cancel
STOP_ABORT_SECONDS = 3.0  # and what it is given after it was cancelled again; then it is abandoned and its end written
DRAIN_SECONDS = 10.0  # active runs at SIGTERM
RUN_STEPS = 100  # model calls in one run; an agent that needs more is going in circles
RUN_SECONDS = 6 * 3600.0  # a run left alone over lunch is fine; one of days is a bug
IDENTICAL_STEPS = 4  # the same tool calls with the same results: it is stuck
CYCLE_REPETITIONS = 3  # of the same few steps in turn, with the same results: it is stuck as well
CYCLE_STEPS = 4  # in one such round; longer ones are work that happens to look alike
COMPACTION_SHARE = 0.8  # of the context window; what is left is for the summary, and for one step that brings a lot
COMPACTION_GAIN_SHARE = 0.25  # of the context window that a summary must be able to free, or it is not worth its price
OVERFLOW_SHARE = 0.75  # of what a provider refused as too long: as much as is taken to fit from then on
SUMMARY_REQUEST_CHARACTERS = 20_000  # of what people asked for, repeated word for word after a summary
SUMMARY_ATTACHMENT_SHARE = 0.25  # of the context window, for the files of that request
SUMMARY_CUTS = 2  # a summary whose own request is too long is tried again with half of it, this often
SHOWN_OUTPUT_CHARACTERS = 1_000_000  # of one tool's output, while it works; its result is far shorter
TITLE_PROMPT_CHARACTERS = 4_000  # of the first prompt, for a model that finds a title for it
TITLE_TOKENS = 1_000  # of its answer; models that think do so within this
TITLE_ANSWER_CHARACTERS = 20_000  # taken of it; a title is in the first line, or nowhere
TITLE_WAIT_SECONDS = 2.0  # that a run which is over waits for its title
PROJECT_NOTES_CHARACTERS = 40_000  # of AGENTS.md: ten thousand tokens that every request carries
USAGE_TOKENS = 10**12  # of one model call that a worker tells of
USAGE_COST = 1_000_000.0  # of one model call; more is a mistake, and sums of it would not be numbers any more
PROMPTS_LEFT_OUT_SHARE = 0.25  # of the context window, for what people said in steps that are left out of it
HISTORY_SLICE_MESSAGES = 100  # of a long history, read in one go at the start of a run: a millisecond
DECODED_AT_ONCE = 200  # messages of a conversation, on the event loop: about a millisecond
ANSWER_PARTS = 256  # texts, thoughts and calls of one answer; providers give one to five of each
TOOL_CALLS_PER_STEP = 64  # a model that asks for more is malfunctioning
TOOL_ARGUMENTS_BYTES = 1 * MIB  # of JSON, of one call
TOOL_ARGUMENTS_DEPTH = 100
MESSAGE_BYTES = 16 * MIB  # text of one assistant message
MODEL_RETRIES = 4
MODEL_RETRY_BASE_SECONDS = 0.5
MODEL_RETRY_MAX_SECONDS = 30.0
MODEL_ANSWER_TOKENS = 8_192  # of one answer, where a provider wants a bound and nobody gave one
MODEL_OUTPUT_TOKENS = 32_000  # asked for in one answer of a model that could give more: a long file, with thoughts
UNKNOWN_CONTEXT_TOKENS = 128_000  # taken to fit into a model that is not in the catalogue; most of today's have more
UNKNOWN_OUTPUT_TOKENS = MODEL_ANSWER_TOKENS  # asked of a model of which nobody knows how much it can give
MODEL_LIST_SECONDS = 10.0  # for a hosted provider to say which models it has
MODEL_LIST_BYTES = 8 * MIB  # of that list; a router's of some hundreds has one
MODEL_LIST_ENTRIES = 2_000  # taken of it
MODEL_NAME_CHARACTERS = 200  # of one name in it; longer ones are left out
LOCAL_SERVER_SECONDS = 1.0  # for a server on this machine to answer; one that loads a model may miss it
LOCAL_MODELS_SHOWN = 20  # of one local server, to people
MODEL_CONNECT_SECONDS = 30.0
MODEL_SILENCE_SECONDS = 300.0  # reasoning models think for minutes without a byte
MODEL_BODY_CHARACTERS = 64 * KIB  # of a request that is written out on the loop: a millisecond; longer ones in a thread
MODEL_LINE_BYTES = 16 * MIB  # one SSE line of a provider
MODEL_ERROR_BYTES = 64 * KIB  # of the body of a refusal; the sentence in it is short
MODEL_TURN_BYTES = 8 * KIB  # of one stream in one turn: some forty tokens, half a millisecond of work
MODEL_INBOX_BYTES = 64 * KIB  # of one stream that wait for their round; then its socket waits, and its provider
MODEL_ROUND_SECONDS = 0.010  # at most between two rounds, in a flood; nobody sees ten milliseconds
MODEL_ROUND_SECONDS_PER_ARRIVAL = 0.002  # in the round before: below some 500 tokens a second nothing waits
MODEL_ROUND_WORK_SECONDS = 0.003  # then everyone else has a turn
MODEL_ROUND_MORE_SECONDS = 0.001  # of each turn after that: we are behind, and a cancel must get through
MODEL_TRAILER_SECONDS = 0.1  # for the end of a body after its last event, so that the connection can be used again
MODEL_IDLE_SECONDS = 15.0  # that a connection is kept for the next step; a tool between two steps is mostly quicker
MODEL_CONNECTIONS = 1_000  # to one provider; each is a run that is streaming
TEST_MODEL_CALLS = 1_000  # kept by the model server for tests; a test that leaves more waiting is not looking
MODEL_RETRY_AFTER_SECONDS = 120.0  # what a provider may ask us to wait: a quota per minute; for longer, people decide

# -- sub-agents: what one root run may use; the config can say otherwise ----------------------------------------------
AGENT_DEPTH = 3  # an agent's agent's agent: deeper, nobody can tell any more who is doing what
AGENTS_RUNNING = 8  # at once; more than a laptop, a provider's quota or a person's overview bears
AGENTS_PER_RUN = 64  # in all; a plan that needs more is a loop
AGENT_TOKENS = 5_000_000  # by all of them together: about the price of a lunch, not of a laptop
AGENT_SECONDS = 2 * 3600.0  # by all of them, from the first one's start
AGENT_PROMPT_CHARACTERS = 200_000  # a task with its material; more is a file
AGENT_RESULT_CHARACTERS = 30_000  # of an answer that a parent is shown, as of any tool's output
AGENT_WAIT_SECONDS = 3600.0  # one call of wait; the model can wait again
CLEAR_UP_SECONDS = 10.0  # for a worktree to be settled and letters to be given back, before a run's end is told
FAMILY_END_SECONDS = 60.0  # a guard: agents are stopped all at once, and each level then clears up before the next
AGENTS_LISTED = 64  # the newest; what a model is shown of hundreds would fill its window
MAIL_PER_STEP = 20  # messages handed to an agent at one step boundary; the rest at the next
MAIL_LEASE_SECONDS = 600.0  # from the claim to the step boundary; a crash gives it back after that

# -- permissions ------------------------------------------------------------------------------------------------------
PENDING_PERMISSIONS = 1_000  # in a workspace; more than people can answer
GRANTS = 10_000  # remembered answers in a workspace
GRANT_PATTERNS = 1_000  # of those, patterns that people typed; each is compared with what is asked
PATTERN_CHARACTERS = 1_000  # of a rule or a typed pattern; a longer one is a program, and nobody sees what it covers
COMMAND_CHARACTERS = 16_384  # of a command line that is read for its parts; a longer one counts as unreadable
COMMAND_PARTS = 500  # commands found in one line; with more it counts as unreadable
COMMAND_DEPTH = 10  # substitutions and `sh -c` in one another; nobody writes more, and each costs a stack frame
UNATTENDED_DENY_SECONDS = 600.0  # a server that follows its clients: nobody came back in ten minutes

# -- questions to people, and an agent's list of what is to be done ---------------------------------------------------
PENDING_QUESTIONS = 100  # batches in a workspace; more than people can answer
QUESTIONS_PER_BATCH = 10  # on one screen; whoever asks more should decide something alone
CHOICES_PER_QUESTION = 20  # that a person reads before choosing
QUESTION_CHARACTERS = 2_000  # of one question; the rest belongs into its description
QUESTION_DESCRIPTION_CHARACTERS = 10_000  # what one must know to answer: a page, not a document
CHOICE_CHARACTERS = 500  # of a label: a line
ANSWER_CHARACTERS = 10_000  # of a text; more is a prompt or a file
TOOL_CALL_ID_CHARACTERS = 1_000  # providers make them of some thirty
TODOS = 100  # of a session; a longer list is not looked at any more
TODO_CHARACTERS = 1_000  # of one of them: a sentence or two

# -- lifetimes --------------------------------------------------------------------------------------------------------
CREATE_GRACE_SECONDS = 30.0  # from create to the first stream
DETACH_GRACE_SECONDS = 10.0  # a network blip
LINGER_SECONDS = 60.0  # an --exit-when-idle server after its last client
RETIRED_SECONDS = 3600.0  # how long a goodbye is remembered: longer than any late create can be on its way
RETIRED_CLIENTS = 10_000
CLIENTS_PER_WORKSPACE = 1_000

# -- journal and streams ----------------------------------------------------------------------------------------------
TAIL_BYTES = 4 * MIB  # of encoded events kept in memory for a workspace; further behind is read from disk
STREAM_WRITE_BYTES = 32 * KIB  # one write to one reader; a phone asleep must cost less than a photo
STREAM_BUFFER_BYTES = 16 * KIB  # that wait in our memory for one connection; then whoever writes to it waits
STREAM_YIELD_EVENTS = 256  # a reader that catches up lets the others run this often
JOINED_CHUNKS = 16  # of one write each, kept until the next wake-up for readers at the same place
PAGE_FACTS = 500  # facts read from disk at once for a reader that is behind
SHARED_PAGES = 16  # kept of one log, for readers that are behind at the same place
PAGE_BYTES = 24 * KIB  # a page is one write, and is what a reader that stopped reading holds, twice over
HEARTBEAT_SECONDS = 10.0  # the wire promises 15
# After text was published, the next waits: for each event of it, so that a flood goes out in fewer pieces, and for each
# reader about as long as writing to it takes, so that there is time for something else.
DELTA_FLUSH_SECONDS_PER_EVENT = 0.001
DELTA_FLUSH_SECONDS = 0.004  # at most, for the events
DELTA_FLUSH_SECONDS_PER_READER = 0.00002
CHECKPOINT_SLICE_SECONDS = 0.004  # of work on checkpoints, then everyone else has a turn
WHOLE_MESSAGE_SECONDS = 1 / 30  # a reader without deltas gets at most 30 flushes a second
WHOLE_MESSAGE_BYTES_PER_SECOND = 512 * KIB  # and fewer the longer the message is, so that bytes stay bounded
THREAD_SWITCH_SECONDS = 0.00025  # until a thread that wants the interpreter gets it from one that computes
CHECKPOINT_SECONDS = 1.0  # what a crash may lose of a message that is being written
STAGED_BYTES = 64 * MIB  # facts waiting for the disk; beyond this new work is refused
COMMIT_FACTS = 5_000  # in one transaction, so that one commit never takes seconds
RETENTION_DAYS = 30
RETENTION_MB = 512
RETENTION_SECONDS = 3600.0  # how often the log is trimmed
TRIM_FACTS = 10_000  # looked at in one go, more than one commit holds, so that trimming delays nobody
REBUILD_DIFFERENCES = 100  # told when the view is compared with the facts; more is one cause repeated

# -- tools and processes ----------------------------------------------------------------------------------------------
TOOL_OUTPUT_CHARACTERS = 30_000  # what a model is shown of a tool's output
FILE_READ_BYTES = 5 * MIB
FILE_WRITE_BYTES = 5 * MIB
FILE_DIGEST_BYTES = 256 * KIB  # from here on whoever wrote a file tells its digest: making it takes a millisecond
FILE_HISTORY_BYTES = 64 * MIB  # of file versions that one session keeps: thousands of edits of usual files
UNDO_FILES = 1_000  # put back by one undo; a run that wrote more is better undone with git
SHELL_COMMAND_CHARACTERS = 100_000  # what a system takes as one argument, with room for its environment
SHELL_SECONDS = 600.0  # of a command that a person typed, as for the longest of an agent's
SHELL_OUTPUT_BYTES = 64 * KIB  # kept of what it prints: a person scrolls, but a model is sent all of it
SHELL_TERM_COLUMNS = 1_000  # of the terminal it was typed in; a wider one is a mistake
DIRECTORY_ENTRIES = 1_000
BASH_OUTPUT_BYTES = 1 * MIB  # kept while a command runs; the middle of more is dropped, and said
BASH_SECONDS = 120.0
BASH_MAX_SECONDS = 600.0
SHOW_SECONDS = 0.1  # between two pieces of a command's output on people's screens
SHOWN_CHARACTERS = 200_000  # of a command's output, shown while it works; nobody reads more of what runs past
JOB_SETTLE_SECONDS = 1.0  # what a background command is given to say its first words, or to fail, before we answer
JOB_WAIT_SECONDS = 60.0  # that `job_output` may wait for more; then people should see the model do something
JOB_PAGE_BYTES = 24_000  # of output in one answer; below TOOL_OUTPUT_CHARACTERS with what is said around it
JOB_SECONDS = 24 * 3600.0  # a background command: whoever still needs it tomorrow starts it again
JOBS_RUNNING = 16  # in the background of one session; each may be a server with a tree of its own
JOBS_KEPT = 1_000  # commands that have ended and can still be looked at, of all sessions; the oldest go first
JOBS_KEPT_BYTES = 64 * MIB  # of their output
KILL_GRACE_SECONDS = 2.0  # between SIGTERM and SIGKILL; under STOP_ASK_SECONDS so that a cancel is over in time
GUARDIAN_SPAWN_SECONDS = 10.0
GUARDIAN_MESSAGE_BYTES = 1 * MIB
PROCESSES = 200  # tools running at once
LANDLOCK_VERSION = 2  # the first with which a confined command can move a file from one directory to another
FENCE_ENTRIES = 20_000  # beside what a confined command is kept from, a rule each; some 50 ms before every command
FENCE_PORTS = 64  # that a server listens on; a guardian reads them in one go
LEFTOVER_GRACE_SECONDS = 0.1  # what a command that ended has left running may finish its last words; then it is killed
SWEEP_SECONDS = 0.02  # between two rounds of killing: a process needs a moment to die
GUARDIAN_END_SECONDS = 5.0  # for everything to be over after aclose; over KILL_GRACE_SECONDS, under DRAIN_SECONDS
DIRECTORY_SCAN_ENTRIES = 100_000  # of one directory, read and sorted; DIRECTORY_ENTRIES is what is shown
LS_DEPTH = 8  # deeper is a search, not a look around
VIEW_LINES = 2_000  # shown when no limit is given
VIEW_LINE_CHARACTERS = 2_000  # longer lines are minified code or data
DIFF_CHARACTERS = 20_000  # of a change, shown to people before they allow it
DIFF_LINES = 400  # compared line by line; the comparison is quadratic and must not hold up the event loop
VIEW_IMAGE_BYTES = 3 * MIB  # of a picture for a model; as base64 it is 4, and providers take 5
MULTIEDIT_EDITS = 100  # of one file in one call; more is a new file
NEAREST_LINES = 2_000  # compared with a line that is not there; a hint must not hold up the event loop
NEAREST_LINE_CHARACTERS = 200  # of each line compared or shown in a hint
NEAREST_LIKENESS = 0.6  # from 0 to 1; what is less alike would only mislead
NEAREST_COMPARISONS = 50  # of those lines in full, the most promising ones: each takes some milliseconds
TOLERANT_CHARACTERS = 2 * MIB  # of a file in which a text is looked for that is not exactly there; a second or two
TOLERANT_EDITS_BYTES = 16 * MIB  # searched so by all replacements of one call together
EDIT_TURN_SECONDS = 1.0  # that an edit waits for another one to be written; twice this is under STOP_ASK_SECONDS
SEARCH_SECONDS = 20.0  # one search; a hostile pattern takes for ever, and a disk that is asleep a few seconds
SEARCH_MEMORY_BYTES = 1024 * MIB  # of the process that searches; only a hostile pattern needs more than a tenth
SEARCH_ANSWER_BYTES = 1 * MIB  # of JSON; TOOL_OUTPUT_CHARACTERS with all their escapes are a fifth
SEARCH_PATTERN_CHARACTERS = 1_000  # more is a text, not a pattern
SEARCH_ENTRIES = 200_000  # files and directories looked at in one search; a larger tree is searched in parts
SEARCH_DEPTH = 64  # directories below each other; deeper is a loop of somebody's making
SEARCH_RESULTS = 1_000  # asked for with `limit`; more than a model is shown in one output
SEARCH_RESULTS_DEFAULT = 100
SEARCH_LINE_CHARACTERS = 300  # of a line that is shown; the part around the match
SEARCH_CONTEXT_LINES = 20  # before and after each match; more is a view
SEARCH_BATCH_FILES = 2_000  # given to one ripgrep, which takes a few milliseconds to start
SEARCH_BATCH_BYTES = 96 * KIB  # of their names; a command line may have 128
GITIGNORE_BYTES = 256 * KIB  # of one .gitignore; the longest that people share are a tenth of it
GLOB_ALTERNATIVES = 100  # that the braces of one pattern may mean

# -- agents' store and mailboxes --------------------------------------------------------------------------------------
SHARED_LOCK_SECONDS = 30.0  # for a lock that is held for well under a millisecond; its holder was stopped otherwise
SHARED_LOCK_PAUSE_SECONDS = 0.0001  # between the first tries; about as long as a lock is held
SHARED_LOCK_PAUSE_MAX_SECONDS = 0.005  # between later ones: who holds it for longer was stopped, or waits for the disk
PROJECT_KEY_CHARACTERS = 60  # of the path that people recognise; with the digest far below what a name may have
AGENT_SESSIONS = 10_000  # of one project, in one index that is read whole
AGENT_SESSION_BYTES = 32 * MIB  # a session's file: a transcript of 8 MiB with its escapes, and more
MAIL_BYTES = 1 * MIB  # of one message; more is a file, and the message says where
MAIL_ID_CHARACTERS = 256  # of a message's id, which senders choose
MAILBOX_MESSAGES = 10_000  # kept, with those set aside; a reader that is this far behind is not reading
MAILBOX_BYTES = 256 * MIB  # kept, with those set aside
MAILBOX_CLAIMS = 100  # handed out by one call; each message is in memory
MAILBOX_LEASE_SECONDS = 60.0  # committing a message takes milliseconds; a reader that needs a minute is gone
MAILBOX_LEASE_MAX_SECONDS = 24 * 3600.0  # a longer lease would hide a message from everyone for days
MAILBOX_ATTEMPTS = 5  # claims without an ack, then it is the message's fault
MAILBOX_TEMPORARY_SECONDS = 3600.0  # a writer that takes longer between two system calls was killed
MAILBOX_RESERVED_NUMBERS = 1_024  # sequence numbers made safe by one sync; a power cut skips at most as many

# -- worktrees of sub-agents ------------------------------------------------------------------------------------------
GIT_SECONDS = 120.0  # one git command; checking out a very large repository takes about one minute
GIT_OUTPUT_BYTES = 16 * MIB  # the names of about 100,000 changed files
GIT_SAID_CHARACTERS = 2_000  # of git's words in an error
GIT_LOCK_SECONDS = 10.0  # until a lock in the repository is free; others hold one for milliseconds
GIT_LOCK_PAUSE_SECONDS = 0.1
WORKTREE_FILES = 200  # changed files told by name; whoever wants all of more looks at the branch

# -- workers, the parent's side: links and the pool --------------------------------------------------------------------
LINK_FRAME_BYTES = 16 * MIB  # one message on a link, as large as a message of an answer may be
LINK_TRANSCRIPT_BYTES = 8 * MIB  # of an executor's own record, which is kept with the run
LINK_CONNECT_SECONDS = 10.0  # from the first packet to the end of the handshake, the worker's `hello` included
LINK_UNSETTLED_BYTES = 4 * MIB  # of events that are on their way to the disk; then the worker waits
LINK_MESSAGE_BYTES = 32 * MIB  # of the text and the parts of one message: MESSAGE_BYTES, and its tool calls
LINK_MESSAGES_PER_RUN = 20_000  # an answer and its results for each of a hundred steps, a hundred times over
LINK_CLOSE_SECONDS = 3.0  # for the other end to tidy up and say goodbye too; then it is not given another run
LINK_PING_SECONDS = 10.0  # the wire says so
LINK_SILENCE_SECONDS = 60.0  # six pings without an answer: the other end, or the way to it, is gone
LINK_PLAIN_SILENCE_SECONDS = RUN_SECONDS  # a plain worker knows no pings, and may think for as long as a run may take
LINK_UNACKED_EVENTS = 1_000  # that an executor waits for at once; it has as many as tools that run side by side
LINK_PENDING_ASKS = 64  # approvals, or requests about agents, of one run at once: TOOL_CALLS_PER_STEP
LINK_ASKS_PER_RUN = 10_000  # in all, since each id is remembered; over RUN_STEPS * TOOL_CALLS_PER_STEP
LINK_APPROVAL_BYTES = 4 * MIB  # of one request: the arguments of a call, escaped, and a diff that people can read
LINK_YIELD_FRAMES = 64  # a worker in a flood lets everyone else have a turn this often
LINK_REASON_CHARACTERS = 300  # of what a worker said, in a sentence for a person
WORKER_START_SECONDS = 30.0  # until it listens; a cold disk and a busy machine, and still shorter than patience
WORKER_LINES_PER_SECOND = 50  # of its output that go to our log; the rest is counted
WORKER_LAST_LINES = 20  # of its output, told when it could not be started
WORKER_LINE_BYTES = 4 * KIB  # of one line of its output, in our log; the rest of the line is left out
WORKERS_RUNNING = 8  # at once at one depth; each is a process of some 60 MiB, and its model has a quota
WORKERS_WAITING = 1_000  # runs that wait for one of those; a line that is longer will not be served today
WORKERS_IDLE_PER_KEY = 2  # kept warm: the next run and one beside it
WORKERS_IDLE = 6  # in all; they cost memory while nobody uses them
WORKER_USES = 50  # runs of one worker: what a library leaks by then goes with the process
WORKER_AGE_SECONDS = 3600.0  # then a fresh one, for the same reason
WORKER_IDLE_SECONDS = 300.0  # a person reads, thinks and asks the next question within five minutes
WORKER_IDLE_MARGIN_SECONDS = 60.0  # by which a worker's own idle clock is longer: the pool decides, it only cleans up

# -- workers, the child's side: `windlass worker` ----------------------------------------------------------------------
WORKER_CONNECTIONS = 1_000  # at once, also those that only knock; below the usual descriptor limit
WORKER_PLAIN_SILENCE_SECONDS = 600.0  # before a plain peer's first run; the wire says so
WORKER_HELLO_SECONDS = 10.0  # until a windlass.1 peer has said hello; it is a program, and it has just connected
WORKER_TURN_SECONDS = 10.0  # that a connection may keep its turn in silence while another one waits for it
WORKER_HELD_BYTES = 64 * KIB  # read from a connection that waits for its turn; then its socket waits too
WORKER_WAITING_RUNS = 64  # each superseded by the next while the first one stops; more is a loop
WORKER_STEERS = 100  # messages to one run that it has not taken; people do not write more, a loop does
WORKER_STEER_CHARACTERS = 4_000_000  # of those together
WORKER_APPROVAL_SECONDS = 24 * 3600.0  # nobody has answered for a day: no
WORKER_WRITE_BYTES = 64 * KIB  # written to one peer in one go; then everyone else has a turn
WORKER_BUFFER_BYTES = 64 * KIB  # that wait in the transport of one peer; then they wait in its outbox
WORKER_MERGE_EVENTS = 1_000  # waiting for a peer that does not read; from then on text is merged
WORKER_MERGE_BYTES = 1 * MIB  # the same in bytes; also the most that merged text may have
WORKER_OUTBOX_BYTES = 32 * MIB  # that wait for one peer: two of the largest frames; then it is taken for dead
WORKER_OUTBOX_FRAMES = 100_000  # the same for frames that cannot be merged
WORKER_OUTBOX_CONTROLS = 1_000  # approvals and errors that a peer does not read
WORKER_HANDOVER_EVENTS = 10_000  # emitted and not taken by the links' thread; then the executor waits for it
WORKER_HANDOVER_SECONDS = 10.0  # that it waits; taking ten thousand events is a matter of milliseconds
WORKER_FRAME_OVERHEAD_BYTES = 300  # of our memory, for each frame that waits
WORKER_TEXT_CHARACTERS = 1_000_000  # in one event, so that with its escapes it fits into one frame; more is cut in two
WORKER_RESULT_CHARACTERS = 1_000_000  # beside a transcript of 8 MiB it fits into one frame with all its escapes
WORKER_ERROR_CHARACTERS = 10_000  # of what an executor says went wrong
WORKER_ABANDONED_RUNS = 100  # that ignore their cancel for ever; then a service takes no new connection
WORKER_SWEEP_SECONDS = 1.0  # for tasks and threads that an executor left behind to end, before the next assignment
WORKER_SWEEP_PAUSE_SECONDS = 0.01  # between two looks at threads, which nothing announces the end of
WORKER_LIFE_LINE_SECONDS = 0.2  # in which a parent that only wrote its document has closed the pipe
WORKER_LAST_SECONDS = 8.0  # to put its things away before it ends; over GUARDIAN_END_SECONDS
WORKER_ORPHAN_SECONDS = 3.0  # for runs to stop when the parent is gone: nobody reads their words any more
WORKER_SPEC_BYTES = 4 * MIB  # of the document on standard input; instructions are its longest part
WORKER_SPEC_SECONDS = 30.0  # until it is there: a parent writes it right after the start

# -- clients and the command line -------------------------------------------------------------------------------------
CLIENT_CONNECT_SECONDS = 10.0  # a server on another continent answers in one
CLIENT_REQUEST_SECONDS = 120.0  # deleting a session waits for its runs to end
CLIENT_ERRAND_SECONDS = RUN_SECONDS  # a summary or a command, which wait for whatever runs before them
CLIENT_RETRIES = 5  # with the waits below about three seconds: a server that restarts is back by then
CLIENT_RETRY_BASE_SECONDS = 0.1
CLIENT_RETRY_MAX_SECONDS = 5.0  # the longest pause between two tries to get a stream back
CLIENT_RETRY_AFTER_SECONDS = 30.0  # a longer Retry-After is the caller's decision, not ours
CLIENT_GIVE_UP_SECONDS = 300.0  # a script that waits for a run must not hang for ever on a server that is gone
CLIENT_GOODBYE_SECONDS = 2.0  # leaving is polite, not important: the server's grace does the same a little later
CLIENT_ANSWER_BYTES = 256 * MIB  # a long session's messages with pictures; more would be a broken server
CLIENT_EVENT_BYTES = 64 * MIB  # a message of MESSAGE_BYTES, with its JSON escapes and pictures
CLIENT_SILENCE_SECONDS = 45.0  # three heartbeats of the wire's promise missed: the link is dead, whatever TCP thinks
TOKEN_FILE_BYTES = 16 * KIB  # a token is 64 bytes; something larger is another file named by mistake
CONSOLE_LINE_BYTES = 4 * MIB  # PROMPT_CHARACTERS of four bytes each, typed or piped
CONSOLE_LINES = 100  # typed ahead and not yet acted on; beyond this the terminal waits
CONSOLE_HISTORY_MESSAGES = 20  # shown on attaching; `windlass sessions show` has them all
CONSOLE_RESULT_LINES = 10  # of a tool's output; `windlass sessions show` has all of it
CONSOLE_STATUS_CHARACTERS = 200  # of a tool call on one line
CONSOLE_PERMISSION_CHARACTERS = 4_000  # of what a tool asks for; more is a file, and is said to be cut
DOCTOR_DISK_WARN_BYTES = 1024 * MIB  # about twice the retained log with its default bounds
DOCTOR_DISK_FAIL_BYTES = 64 * MIB  # a commit could fail at any moment

# -- fetch -------------------------------------------------------------------------------------------------------------
FETCH_URL_CHARACTERS = 4_096  # browsers and servers take about as much; people are shown all of it
FETCH_SECONDS = 30.0  # for a page, with its redirects
FETCH_REDIRECTS = 5  # on the same host; more is a loop
FETCH_BYTES = 5 * MIB  # of a page: FILE_READ_BYTES
FETCH_HTML_CHARACTERS = 400_000  # of its text and tags that are made Markdown; a second or two of work
FETCH_HTML_TAGS = 20_000  # of those; a long article has some thousand, and each is an object of a slow library
FETCH_HTML_DEPTH = 40  # of tags that are left after tidying; what walks the tree recurses
FETCH_CHARACTERS = 25_000  # shown at a time; with what is said around it below TOOL_OUTPUT_CHARACTERS

# -- MCP servers -------------------------------------------------------------------------------------------------------
MCP_RESOURCE_CHARACTERS = 2_000  # of a call's arguments in what rules and grants are about; longer ones by their digest
MCP_CONNECT_SECONDS = 10.0  # a run waits at most this long for a server that is slow or dead
MCP_CALL_SECONDS = 120.0  # as long as a command of `bash` may take by default
MCP_MESSAGE_BYTES = 16 * MIB  # one message of a server: a result of ten megabytes gets through, and is shortened then
MCP_THREAD_BYTES = 256 * KIB  # from here on a message is taken apart in a thread: everyone else has a turn meanwhile
MCP_OUTBOX_MESSAGES = 100  # that wait for a server to read them; one that asks more than it reads is given up
MCP_CALLS = 64  # of one server at once: TOOL_CALLS_PER_STEP; the next one is refused
MCP_TOOLS = 200  # of one server; a model that is told of more finds none of them
MCP_TOOL_PAGES = 50  # of one list; a server that always has another page is in a loop
MCP_TOOL_NAME_CHARACTERS = 128  # the protocol says so
MCP_DESCRIPTION_CHARACTERS = 4_000  # of one tool; all of it is sent with every model call
MCP_SCHEMA_BYTES = 64 * KIB  # of one tool, for the same reason
MCP_TOOLS_BYTES = 2 * MIB  # of all tools of a workspace together, told to one run in one message
MCP_IMAGE_BYTES = 5 * MIB  # of base64; what providers take
MCP_ERROR_CHARACTERS = 300  # of what a server says went wrong, in a sentence for a person
MCP_LAST_LINES = 20  # of its standard error, in our log when it ended by itself
MCP_LINE_CHARACTERS = 500  # of one such line
MCP_RESTARTS = 5  # of one server in the window below; then it is not the moment that is wrong but the server
MCP_RESTART_WINDOW_SECONDS = 300.0
MCP_RESTART_BASE_SECONDS = 0.5  # before the first; twice as long before each further one
MCP_REFRESH_SECONDS = 1.0  # between two looks at the tools of a server that says again and again that they changed
MCP_LEAVE_SECONDS = 1.0  # for a server to end after its input was closed, as the protocol says; then it is killed
MCP_CLOSE_SECONDS = 5.0  # for all of that; over MCP_LEAVE_SECONDS and KILL_GRACE_SECONDS together

# -- simulation -------------------------------------------------------------------------------------------------------
SIM_TICK_SECONDS = 0.010  # delays are rounded up to this, so that timers collide; races between timers hide otherwise
SIM_CALLBACKS = 1_000_000  # in one simulated run; a scenario needs thousands, so this many is a task that spins
