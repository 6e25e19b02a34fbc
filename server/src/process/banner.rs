//! What a start tells: where the server is, where its data is, and how to talk to it.

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

use super::ProcessError;
use crate::grpc::listener::{Address, Listener};

/// How many names of a certificate are told.
const NAMES: usize = 4;

/// Where a server is reached, and how.
#[derive(Clone, Debug)]
pub(super) struct Place {
    address: Address,
    tls: bool,
    /// What its certificate is for.
    names: Vec<String>,
}

impl Place {
    /// Where a listener is reached.
    pub(super) fn of(listener: &Listener) -> Self {
        Self {
            address: listener.address().clone(),
            tls: listener.speaks_tls(),
            names: Vec::new(),
        }
    }

    /// The same, with the names that its certificate has.
    pub(super) fn named(mut self, names: Vec<String>) -> Self {
        self.names = names;
        self
    }
}

/// The ready file: there only while its server takes calls.
#[derive(Debug)]
pub(super) struct Ready {
    path: PathBuf,
    /// What this server wrote.
    written: Option<String>,
}

impl Ready {
    /// A place for the file. One that an earlier server left there is removed.
    pub(super) fn at(path: &Path) -> Result<Self, ProcessError> {
        let path = super::absolute(path)?;
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(ProcessError::Directory { path, error })
            }
            _ => Ok(Self {
                path,
                written: None,
            }),
        }
    }

    /// Writes it in one step: whoever sees it sees all of it. It is removed when this is dropped.
    pub(super) fn write(
        mut self,
        place: &Place,
        probes: Option<&Place>,
        data_dir: &Path,
    ) -> Result<Self, ProcessError> {
        let ready = serde_json::json!({
            "address": found_from_anywhere(place)?,
            "health_address": probes.map(found_from_anywhere).transpose()?,
            "pid": std::process::id(),
            "data_dir": data_dir,
            "version": env!("CARGO_PKG_VERSION"),
        });
        let text = format!("{ready}\n");
        let mut staged = self.path.as_os_str().to_owned();
        staged.push(format!(".{}", std::process::id()));
        let staged = PathBuf::from(staged);
        let written =
            std::fs::write(&staged, &text).and_then(|()| std::fs::rename(&staged, &self.path));
        written.map_err(|error| ProcessError::Directory {
            path: self.path.clone(),
            error,
        })?;
        self.written = Some(text);
        Ok(self)
    }
}

impl Drop for Ready {
    fn drop(&mut self) {
        // Another server may have taken its place.
        let found = std::fs::read_to_string(&self.path).ok();
        if self.written.is_some() && self.written == found {
            let _gone = std::fs::remove_file(&self.path);
        }
    }
}

/// Prints the lines of a start to standard output. A closed one is no reason not to serve.
pub(super) fn print(
    places: (&Place, Option<&Place>),
    data_dir: &Path,
    (token, minted): (&Path, bool),
    agents: &[String],
    cut: usize,
) {
    let text = text(
        places,
        data_dir,
        (token, minted),
        agents,
        cut,
        &sessionctl(),
    );
    let _ = std::io::stdout().write_all(text.as_bytes());
}

fn text(
    (place, probes): (&Place, Option<&Place>),
    data_dir: &Path,
    (token, minted): (&Path, bool),
    agents: &[String],
    cut: usize,
    ctl: &str,
) -> String {
    use std::fmt::Write as _;
    let mut out = format!("sessiond {} is ready\n", env!("CARGO_PKG_VERSION"));
    // Writing to a String does not fail.
    let _ = writeln!(out, "  address  {}", endpoint(place));
    if let Some(probes) = probes {
        let _ = writeln!(out, "  health   {} (to whoever asks)", endpoint(probes));
    }
    let _ = writeln!(out, "  data     {}", data_dir.display());
    let _ = writeln!(
        out,
        "  token    {} ({}lets its reader do everything; keep it private)",
        token.display(),
        if minted { "new; " } else { "" }
    );
    let security = if place.tls {
        let _ = writeln!(
            out,
            "  TLS      for {}; clients use one of these as the address, and leave --tls-ca out if \
             their system knows the certificate's authority",
            told(&place.names)
        );
        "-cacert CA.pem"
    } else {
        "-plaintext"
    };
    for (at, agent) in agents.iter().enumerate() {
        let label = if at == 0 { "agents" } else { "" };
        let _ = writeln!(out, "  {label:<8} {agent}");
    }
    if cut > 0 {
        let _ = writeln!(
            out,
            "  settled  {cut} run(s) that a stop or a crash had cut, as interrupted"
        );
    }
    let flags = flags(place, data_dir);
    let _ = writeln!(out, "talk to it from another terminal:");
    let _ = writeln!(
        out,
        "  {ctl}{flags} invoke --new first \"what is this project?\""
    );
    let _ = writeln!(out, "  {ctl}{flags} attach first");
    if let Some(reached) = reached(place) {
        let _ = writeln!(
            out,
            "  grpcurl {security} -H \"authorization: Bearer $(cat {})\" {reached} list",
            word(token)
        );
    }
    let _ = writeln!(out, "stop it with Ctrl-C; what it acknowledged is kept");
    out
}

/// The address as clients take it, wherever they are started.
fn found_from_anywhere(place: &Place) -> Result<String, ProcessError> {
    let mut place = place.clone();
    if let Address::Unix(path) = &place.address {
        place.address = Address::Unix(super::absolute(path)?);
    }
    Ok(endpoint(&place))
}

/// The address as clients take it.
fn endpoint(place: &Place) -> String {
    match &place.address {
        Address::Tcp(address) if place.tls => format!("https://{address}"),
        Address::Tcp(address) => format!("http://{address}"),
        Address::Unix(path) => format!("unix:{}", path.display()),
    }
}

/// The host and the port that a client on this machine connects to; none of a socket. All addresses
/// together are none, and over TLS only what the certificate is for is one.
fn reached(place: &Place) -> Option<String> {
    let Address::Tcp(bound) = &place.address else {
        return None;
    };
    let (ip, port) = (bound.ip(), bound.port());
    let here = match ip {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    let is_here = |name: &String| name.parse() == Ok(here);
    if !place.tls || place.names.iter().any(is_here) {
        return Some(SocketAddr::new(here, port).to_string());
    }
    // A name for all the hosts of a domain is none of them.
    let mut names = place.names.iter().filter(|name| !name.contains('*'));
    let name = names.next().map_or("HOST", String::as_str);
    Some(match name.parse() {
        Ok(address) => SocketAddr::new(address, port).to_string(),
        Err(_) => format!("{name}:{port}"),
    })
}

/// Names in a row, and not too many.
fn told(names: &[String]) -> String {
    let (first, rest) = names.split_at(names.len().min(NAMES));
    match (first, rest.len()) {
        ([], _) => "no name that could be read".to_owned(),
        (first, 0) => first.join(", "),
        (first, more) => format!("{} and {more} more", first.join(", ")),
    }
}

/// The flags that a client needs beyond its defaults.
fn flags(place: &Place, data_dir: &Path) -> String {
    let mut flags = String::new();
    let address = match reached(place) {
        Some(reached) if place.tls => format!("https://{reached} --tls-ca CA.pem"),
        Some(reached) => format!("http://{reached}"),
        None => endpoint(place),
    };
    if address != format!("http://{}", crate::config::DEFAULT_LISTEN) {
        flags.push_str(" --address ");
        flags.push_str(&address);
    }
    if crate::config::default_data_dir().ok().as_deref() != Some(data_dir) {
        flags.push_str(" --data-dir ");
        flags.push_str(&word(data_dir));
    }
    flags
}

/// The client as a person can call it: beside this binary if it is there.
fn sessionctl() -> String {
    let beside = std::env::current_exe()
        .ok()
        .map(|exe| exe.with_file_name("sessionctl"));
    let Some(beside) = beside.filter(|path| path.exists()) else {
        return "sessionctl".to_owned();
    };
    let here = std::env::current_dir()
        .ok()
        .and_then(|here| beside.strip_prefix(here).map(Path::to_owned).ok());
    word(&here.unwrap_or(beside))
}

/// A path as a shell takes it for one word.
fn word(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_alphanumeric() || "/._-+@%:,=".contains(c);
    if text.chars().all(plain) {
        return text;
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(address: Address) -> Place {
        Place {
            address,
            tls: false,
            names: Vec::new(),
        }
    }

    #[test]
    fn a_ready_file_is_there_only_while_its_own_server_takes_calls() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("ready.json");
        std::fs::write(&path, "an earlier server is ready").unwrap();
        let ready = Ready::at(&path).unwrap();
        assert!(!path.exists(), "nobody is ready yet");
        let address = place(Address::Unix("s.sock".into()));
        let ready = ready.write(&address, None, Path::new("/d")).unwrap();
        let told: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let here = std::env::current_dir().unwrap().join("s.sock");
        assert_eq!(told["address"], format!("unix:{}", here.display()));
        drop(ready);
        assert!(!path.exists(), "it stopped");

        let ready = Ready::at(&path).unwrap();
        let ready = ready
            .write(&address, Some(&address), Path::new("/d"))
            .unwrap();
        std::fs::write(&path, "another server is ready").unwrap();
        drop(ready);
        assert!(path.exists(), "it is the other server's");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_start_says_where_it_is_and_how_to_talk_to_it() {
        let address = place(Address::Tcp("127.0.0.1:50051".parse().unwrap()));
        let agents = ["demo (default)".to_owned(), "scripted".to_owned()];
        let probes = place(Address::Tcp("0.0.0.0:50052".parse().unwrap()));
        let told = |directory: &str| {
            let directory = Path::new(directory);
            let token = directory.join("owner.token");
            let places = (&address, Some(&probes));
            text(places, directory, (&token, false), &agents, 2, "sessionctl")
        };
        let plain = told("/d");
        for part in [
            "address  http://127.0.0.1:50051",
            "health   http://0.0.0.0:50052",
            "/d/owner.token (lets its reader",
            "demo (default)",
            "2 run(s)",
            "--data-dir /d invoke --new",
        ] {
            assert!(plain.contains(part), "{part:?} is missing in:\n{plain}");
        }
        // What is copied into a shell is one word.
        let spaced = told("/it's a d");
        for part in [
            r"--data-dir '/it'\''s a d' invoke --new",
            r"$(cat '/it'\''s a d/owner.token')",
        ] {
            assert!(spaced.contains(part), "{part:?} is missing in:\n{spaced}");
        }
    }

    #[test]
    fn what_a_start_has_pasted_reaches_it_also_where_it_listens_on_all_addresses_or_speaks_tls() {
        let told = |listens: &str, names: Option<&[&str]>| {
            let names = names.map(|names| names.iter().map(|name| (*name).to_owned()).collect());
            let place = Place {
                address: Address::Tcp(listens.parse().unwrap()),
                tls: names.is_some(),
                names: names.unwrap_or_default(),
            };
            let data = Path::new("/d");
            let token = data.join("t");
            text((&place, None), data, (&token, true), &[], 0, "sessionctl")
        };
        for (listens, names, client, grpcurl) in [
            ("0.0.0.0:1", None, "http://127.0.0.1:1 ", "127.0.0.1:1"),
            ("[::]:1", None, "http://[::1]:1 ", "[::1]:1"),
            (
                "0.0.0.0:1",
                Some(&["*.b.c", "a.b.c", "10.0.0.7"][..]),
                "https://a.b.c:1 --tls-ca CA.pem ",
                "a.b.c:1",
            ),
            (
                "127.0.0.1:1",
                Some(&["localhost", "127.0.0.1"][..]),
                "https://127.0.0.1:1 --tls-ca CA.pem ",
                "127.0.0.1:1",
            ),
            (
                "[::]:1",
                Some(&["fd00::7"][..]),
                "https://[fd00::7]:1 --tls-ca CA.pem ",
                "[fd00::7]:1",
            ),
            (
                "0.0.0.0:1",
                Some(&[][..]),
                "https://HOST:1 --tls-ca CA.pem ",
                "HOST:1",
            ),
        ] {
            let told = told(listens, names);
            let pasted = format!("sessionctl --address {client}--data-dir /d attach");
            assert!(told.contains(&pasted), "{pasted:?} is missing in:\n{told}");
            assert!(told.contains("/d/t (new; lets its reader"), "{told}");
            assert!(told.contains(&format!("{grpcurl} list")), "{told}");
            if let Some(name) = names.and_then(<[_]>::first) {
                assert!(told.contains(&format!("TLS      for {name}")), "{told}");
            }
        }
    }
}
