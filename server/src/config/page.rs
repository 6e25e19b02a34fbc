//! `docs/configuration.md`, made from the declaration. A test fails when the file is another.

use std::fmt::Write as _;

use super::Settings;
use super::declared::DECLARED;
use super::fixed::{Fixed, OF_CALLS, OF_DATA, OF_THE_CORE};
use super::setting::Setting;

const HEAD: &str = "\
# Configuration

Made from the declaration in `server/src/config/declared.rs` by `sessiond config page`; do not edit it.

A setting comes from, the first that has it: a flag, the environment, the file (`--config FILE`, or
`SESSIONPLANE_CONFIG`), its default. Every setting can be set by the flag `--set KEY=VALUE`, and every
one without a name of your choice in its key (`*`) by its environment variable; the parts of a list are
separated by commas there. An unknown key in the file is an error.

```
sessiond config check [--config FILE]    everything that is wrong: where, the limit, the way out; exit 1
sessiond config explain [KEY|SECTION]    each effective value and where it comes from
sessiond config schema                   a JSON Schema of the file, for editors
```

A setting is never a secret: secrets are in files of their own that a setting may name, so that all of
this can be shown.

```toml
listen = \"127.0.0.1:50051\"
default_agent = \"docs\"

[workspaces.main]
root = \"/srv/repository\"

[agents.docs]
engine = \"demo\"
workspace = \"main\"

[limits]
max_connections = 256

[drain]
deadline_seconds = 20
```
";

const LIMITS: &str = "
## Limits that are fixed

The contract fixes these, so that every server is the same to its clients. Each refusal names the field,
its size, the limit and the way out. Names of the core are those of `server/core/src/domain/limits.rs`.

| limit | most | what it bounds |
|---|---|---|
";

/// The page.
#[must_use]
pub fn page() -> String {
    let mut out = HEAD.to_owned();
    let mut section = None;
    for setting in DECLARED {
        let here = setting.key.split_once('.').map(|(section, _)| section);
        if section != Some(here) {
            section = Some(here);
            let title = here.map_or_else(|| "At the top".to_owned(), |name| format!("`[{name}]`"));
            // Writing to a String does not fail.
            let _ = write!(
                out,
                "\n## {title}\n\n| key | takes | default | variable | what it does |\n\
                 |---|---|---|---|---|\n"
            );
        }
        row(&mut out, setting);
    }
    out.push_str(LIMITS);
    for fixed in OF_THE_CORE.iter().chain(OF_DATA).chain(OF_CALLS) {
        fixed_row(&mut out, fixed);
    }
    out
}

fn row(out: &mut String, setting: &Setting) {
    let default = (setting.get)(&Settings::default(), "");
    let default = match default {
        _ if setting.needed => "needed".to_owned(),
        None => String::new(),
        Some(value) => format!("`{value}`"),
    };
    let variable = setting.variable();
    let variable = variable.map_or_else(String::new, |name| format!("`{name}`"));
    let flag = setting.flag;
    let flag = flag.map_or_else(String::new, |flag| format!(" Flag: `--{flag}`."));
    let _ = writeln!(
        out,
        "| `{}` | {} | {default} | {variable} | {}{flag} |",
        setting.key,
        setting.kind.takes(),
        setting.about
    );
}

fn fixed_row(out: &mut String, fixed: &Fixed) {
    let unit = if fixed.unit.is_empty() { "" } else { " " };
    let _ = writeln!(
        out,
        "| `{}` | {}{unit}{} | {} |",
        fixed.name, fixed.limit, fixed.unit, fixed.about
    );
}
