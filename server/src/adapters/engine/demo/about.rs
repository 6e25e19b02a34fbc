//! What the agent says of itself.

/// What every answer says once.
pub(super) const NO_MODEL: &str = "I am no language model";

/// What ends an answer that is no search's: short, and the same everywhere.
pub(super) const PLAIN: &str =
    "I am no language model: this is what the files say. `/about` tells what I can be asked.\n";

/// What is said of a folder without files.
pub(super) const EMPTY: &str = "\
I see no file in this folder: it is empty, or holds only what I leave out (what is ignored, built or \
secret). Start the server in the folder that you want to ask about, or with `sessiond --workspace \
FOLDER`, and ask again.

I am no language model: I search and read a folder, and cannot change it. `/about` tells what I can be \
asked.
";

/// What the agent is, what it can be asked, and how another takes its place.
pub(super) const ABOUT: &str = "\
I am no language model. I am the agent that is built into the server, so that there is something to \
invoke, watch, steer and abort before a real one is set up. I list, search and read this folder and \
its git data, and change nothing.

Ask me, for example:
- what is this project? | tree | how many lines of code?
- show README | show src/main.rs lines 10 to 40 | show src/main.rs:120
- where is the configuration read? | where is HarbourGate defined? | \"an exact phrase\"
- which branch? | git status | last 10 commits

Steer me while I look: \"look in src\", \"not in tests\", \"also errors\", \"gate instead\".

A real agent is an engine of the server: code that implements the `Engine` port, and an \
`[agents.NAME]` table in the file of `sessiond --config FILE`. Then `sessionctl invoke --new NAME \
--agent NAME \"...\"` speaks to it. docs/demo-agent.md of the server says more.
";
