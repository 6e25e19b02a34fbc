//! Certificates of a test's own authority, and the files that a server reads them from.

#![allow(dead_code, reason = "each suite uses its part")]

use std::fs;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, SanType, date_time_ymd,
};
use tempfile::TempDir;

/// An authority.
pub(crate) struct Pki {
    authority: CertifiedIssuer<'static, KeyPair>,
}

/// A certificate and its key, PEM.
pub(crate) struct Pair {
    pub(crate) cert: String,
    pub(crate) key: String,
}

/// The files of a server.
pub(crate) struct Files {
    pub(crate) directory: TempDir,
    pub(crate) cert: PathBuf,
    pub(crate) key: PathBuf,
    pub(crate) ca: PathBuf,
}

impl Pki {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let authority = CertifiedIssuer::self_signed(params, key).unwrap();
        Self { authority }
    }

    /// The authority's certificate, PEM.
    pub(crate) fn ca(&self) -> String {
        self.authority.pem()
    }

    /// A certificate for these names, good for as long as a test may take.
    pub(crate) fn pair(&self, names: &[&str]) -> Pair {
        self.pair_until(names, 4000)
    }

    /// A certificate of a client with these URIs and names.
    pub(crate) fn client(&self, uris: &[&str], names: &[&str]) -> Pair {
        self.client_until(uris, names, 4000)
    }

    /// The same, one that ends with the beginning of a year.
    pub(crate) fn client_until(&self, uris: &[&str], names: &[&str], year: i32) -> Pair {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let mut params = CertificateParams::new(names).unwrap();
        let uris = uris
            .iter()
            .map(|uri| SanType::URI((*uri).try_into().unwrap()));
        params.subject_alt_names.extend(uris);
        params.not_after = date_time_ymd(year, 1, 1);
        self.signed(&params)
    }

    /// A certificate that ends with the beginning of a year.
    pub(crate) fn pair_until(&self, names: &[&str], year: i32) -> Pair {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.not_after = date_time_ymd(year, 1, 1);
        self.signed(&params)
    }

    fn signed(&self, params: &CertificateParams) -> Pair {
        let key = KeyPair::generate().unwrap();
        let cert = params.clone().signed_by(&key, &self.authority).unwrap();
        Pair {
            cert: cert.pem(),
            key: key.serialize_pem(),
        }
    }

    /// The files of a server on this machine.
    pub(crate) fn files(&self) -> Files {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let files = Files {
            cert: path("cert.pem"),
            key: path("key.pem"),
            ca: path("ca.pem"),
            directory,
        };
        files.put(&self.pair(&["localhost", "127.0.0.1"]));
        fs::write(&files.ca, self.ca()).unwrap();
        files
    }
}

impl Files {
    /// Puts another pair in their place, one after the other as a copy does it.
    pub(crate) fn put(&self, pair: &Pair) {
        replace(&self.cert, &pair.cert);
        replace(&self.key, &pair.key);
    }
}

/// Puts a file in the place of another in one step.
pub(crate) fn replace(path: &Path, text: &str) {
    let beside = path.with_extension("new");
    fs::write(&beside, text).unwrap();
    fs::rename(&beside, path).unwrap();
}
