//! Which files people write, and which of them are nobody's reading matter.

use std::ffi::OsStr;
use std::path::Path;

use crate::adapters::boundary::Taste;

/// Folders that hold what is made or fetched, not what people wrote.
const SKIPPED_FOLDERS: [&str; 7] = [
    "target",
    "node_modules",
    "__pycache__",
    "venv",
    "vendor",
    "dist",
    "coverage",
];
/// Folders with a dot that people do write in.
const DOTTED_FOLDERS: [&str; 2] = [".github", ".cargo"];
/// Files that tools write, or that hold no text worth a search.
const SKIPPED_ENDINGS: [&str; 8] = [
    ".lock",
    "-lock.json",
    "-lock.yaml",
    ".min.js",
    ".min.css",
    ".map",
    ".svg",
    ".log",
];

/// Endings of files that hold keys.
const SECRET_ENDINGS: [&str; 13] = [
    ".pem",
    ".key",
    ".p12",
    ".p8",
    ".pfx",
    ".ppk",
    ".jks",
    ".keystore",
    ".kdbx",
    ".env",
    ".tfstate",
    ".tfvars",
    // Of this server's own: `owner.token`, and what `sessiond token create` is told to write.
    ".token",
];
/// Folders that hold little else.
const SECRET_FOLDERS: [&str; 6] = [".ssh", ".gnupg", ".aws", ".azure", ".kube", ".gcloud"];
/// Files that commonly hold secrets, besides `.env` and its like.
const SECRETS: [&str; 25] = [
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ecdsa_sk",
    "id_ed25519",
    "id_ed25519_sk",
    "id_xmss",
    ".netrc",
    "_netrc",
    ".npmrc",
    ".pypirc",
    ".git-credentials",
    ".htpasswd",
    ".pgpass",
    ".dockercfg",
    "credentials",
    "credentials.toml",
    "credentials.json",
    "application_default_credentials.json",
    "secrets.json",
    "secrets.toml",
    "secrets.yml",
    "secrets.yaml",
    // Of this server's own, besides `digest.key`.
    "tokens.json",
    "tokens.used.json",
];

/// The taste of people who ask about what they wrote.
pub(super) struct People;

impl Taste for People {
    fn enters(&self, name: &OsStr) -> bool {
        // A name that is no text is taken, so that it can be told that it is left out.
        let name = &*name.to_string_lossy();
        if name.starts_with('.') {
            return DOTTED_FOLDERS.contains(&name);
        }
        !SKIPPED_FOLDERS.contains(&name)
    }

    fn takes(&self, name: &OsStr) -> bool {
        let made = |name: &str| SKIPPED_ENDINGS.iter().any(|ending| name.ends_with(ending));
        !is_secret(name) && !made(&name.to_string_lossy())
    }
}

/// Whether a file commonly holds secrets, by its path, whatever the case.
pub(super) fn is_secret_path(path: &Path) -> bool {
    let is_folder = |part: &OsStr| {
        let part = part.to_string_lossy().to_ascii_lowercase();
        SECRET_FOLDERS.contains(&part.as_str())
    };
    let name = path.file_name().unwrap_or_default();
    path.iter().any(is_folder) || path.ends_with(".docker/config.json") || is_secret(name)
}

/// Whether a file commonly holds secrets, by its name, whatever the case.
fn is_secret(name: &OsStr) -> bool {
    let name = name.to_string_lossy().to_ascii_lowercase();
    name.starts_with(".env")
        || SECRETS.contains(&name.as_str())
        || SECRET_ENDINGS.iter().any(|ending| name.ends_with(ending))
}
