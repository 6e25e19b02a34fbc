//! Where an issuer's keys are read from: a file, or a URL.
//!
//! Bounded in size and in time; no redirect is followed. What must never enter: what a key is for.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::header::{ACCEPT, HOST};
use http::{Request, StatusCode, Uri};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore, crypto};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::super::super::plain_file;
use super::jwks;

/// How long an issuer may take to answer.
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);
/// Largest file of authorities that is read, in bytes.
const MAX_CA_BYTES: u64 = 1024 * 1024;

/// Where keys come from.
#[async_trait]
pub trait KeySource: Send + Sync {
    /// What is there now. Takes a few seconds at most.
    ///
    /// # Errors
    /// In words, when it cannot be read.
    async fn fetch(&self) -> Result<Vec<u8>, String>;
}

/// Keys in a file.
#[derive(Debug)]
pub struct KeyFile(pub PathBuf);

#[async_trait]
impl KeySource for KeyFile {
    async fn fetch(&self) -> Result<Vec<u8>, String> {
        let path = self.0.clone();
        let read = move || plain_file::read(&path, jwks::MAX_BYTES as u64);
        // A file system that hangs must not hang who waits.
        let read = timeout(ANSWERS_WITHIN, tokio::task::spawn_blocking(read)).await;
        let read = read.map_err(|_elapsed| "it does not answer".to_owned())?;
        let read = read.unwrap_or_else(|failed| Err(failed.into()));
        read.map_err(|error| format!("{} cannot be read: {error}", self.0.display()))
    }
}

/// Keys behind a URL.
pub struct KeyUrl {
    uri: Uri,
    host: String,
    port: u16,
    tls: Option<Arc<ClientConfig>>,
}

impl KeyUrl {
    /// Keys at this URL: `https`, or `http` on this host. `ca` has the authorities of its server; without
    /// it the system's count.
    ///
    /// # Errors
    /// In words, when it is no such URL, or the authorities cannot be read.
    pub fn new(url: &str, ca: Option<&PathBuf>) -> Result<Self, String> {
        let (uri, host, secure) = parts(url)?;
        let tls = secure.then(|| client(ca)).transpose()?.map(Arc::new);
        let port = uri
            .port_u16()
            .unwrap_or(if tls.is_some() { 443 } else { 80 });
        Ok(Self {
            uri,
            host,
            port,
            tls,
        })
    }

    /// Whether a text is such a URL.
    ///
    /// # Errors
    /// In words, when it is none.
    pub fn check(url: &str) -> Result<(), String> {
        parts(url).map(drop)
    }

    async fn ask(&self) -> Result<Vec<u8>, String> {
        let bare = self.host.trim_start_matches('[').trim_end_matches(']');
        let connected = TcpStream::connect((bare, self.port)).await;
        let stream = connected.map_err(|error| format!("it cannot be reached: {error}"))?;
        let Some(tls) = &self.tls else {
            return self.read(stream).await;
        };
        let name = ServerName::try_from(bare.to_owned()).map_err(|error| error.to_string())?;
        let shaken = TlsConnector::from(tls.clone()).connect(name, stream).await;
        let stream = shaken.map_err(|error: io::Error| format!("TLS with it fails: {error}"))?;
        self.read(stream).await
    }

    async fn read<S>(&self, stream: S) -> Result<Vec<u8>, String>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let told = |error: hyper::Error| format!("it does not answer: {error}");
        let (mut send, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(told)?;
        let path = self.uri.path_and_query().map_or("/", |path| path.as_str());
        let authority = self
            .uri
            .authority()
            .map_or("", |authority| authority.as_str());
        let request = Request::get(path)
            .header(HOST, authority)
            .header(ACCEPT, "application/json")
            .body(Empty::<Bytes>::new());
        let request = request.map_err(|error| error.to_string())?;
        let answered = async {
            let response = send.send_request(request).await.map_err(told)?;
            if response.status() != StatusCode::OK {
                return Err(format!("it answers HTTP {}", response.status().as_u16()));
            }
            let body = Limited::new(response.into_body(), jwks::MAX_BYTES)
                .collect()
                .await;
            let body = body.map_err(|error| format!("its answer cannot be read: {error}"))?;
            Ok(body.to_bytes().to_vec())
        };
        // The connection is driven here, so that none outlives the question.
        let driven = async {
            drop(connection.await);
            std::future::pending().await
        };
        tokio::select! {
            answered = answered => answered,
            never = driven => never,
        }
    }
}

#[async_trait]
impl KeySource for KeyUrl {
    async fn fetch(&self) -> Result<Vec<u8>, String> {
        let asked = timeout(ANSWERS_WITHIN, self.ask()).await;
        let asked = asked.unwrap_or_else(|_elapsed| {
            Err(format!(
                "it does not answer within {} s",
                ANSWERS_WITHIN.as_secs()
            ))
        });
        asked.map_err(|problem| format!("{}: {problem}", self.uri))
    }
}

/// A URL, its host, and whether it is asked over TLS.
fn parts(url: &str) -> Result<(Uri, String, bool), String> {
    let wrong = || "use https://HOST/PATH, or http:// on 127.0.0.1 or localhost".to_owned();
    let uri: Uri = url.parse().map_err(|_| wrong())?;
    let host = uri.host().ok_or_else(wrong)?.to_owned();
    let authority = uri.authority().ok_or_else(wrong)?;
    if authority.as_str().contains('@') {
        return Err("has a user in it; use https://HOST/PATH".to_owned());
    }
    let here = ["127.0.0.1", "localhost", "[::1]"].contains(&host.as_str());
    match uri.scheme_str() {
        Some("https") => Ok((uri, host, true)),
        Some("http") if here => Ok((uri, host, false)),
        _ => Err(wrong()),
    }
}

fn client(ca: Option<&PathBuf>) -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    match ca {
        Some(path) => {
            let wrong = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
            let read = plain_file::read(path, MAX_CA_BYTES).map_err(|error| wrong(&error))?;
            for authority in CertificateDer::pem_slice_iter(&read) {
                let authority = authority.map_err(|error| wrong(&error))?;
                roots.add(authority).map_err(|error| wrong(&error))?;
            }
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    if roots.is_empty() {
        return Err(
            "no authority is known that could vouch for it; name one with jwks_ca_file".to_owned(),
        );
    }
    let provider = Arc::new(crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| error.to_string())?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

#[cfg(test)]
#[path = "fetch/tests.rs"]
mod tests;
