//! What a start makes of `[identity]`, `[policy]` and `[tls]`: who may call, what they may do, over what.

use std::path::Path;
use std::sync::Arc;

use sessionplane_core::domain::ids::{PrincipalId, TenantId};
use sessionplane_core::ports::clock::Clock;

use super::ProcessError;
use crate::adapters::authn::{
    Identities, OWNER_ID, OWNER_TENANT, OwnerToken, Registered, TokenBook, Tokens,
};
use crate::adapters::authz::{CedarAuthorizer, PolicyFiles, Role};
use crate::adapters::tls_files::{TlsFiles, TlsPaths};
use crate::config::{Settings, TlsSettings};
use crate::grpc::listener::Guard;
use crate::grpc::tls::{ALPN, Tls};

/// Everybody who can be known, and the principals that are configured.
pub(super) fn identities(
    config: &Settings,
    data_dir: &Path,
    clock: Arc<dyn Clock>,
) -> Result<(Identities, Vec<Registered>), ProcessError> {
    TokenBook::of(data_dir).tidy();
    // Those that make no sense were told of when the configuration was read.
    let (registered, _wrong) = config.identity.registered();
    for one in &registered {
        let helps = |group: &String| Role::ALL.iter().any(|role| role.group() == group);
        let told_elsewhere = !config.policy.paths().is_fixed();
        if !told_elsewhere && !one.groups.iter().any(helps) {
            tracing::warn!(
                principal = one.id.as_str(),
                "this principal may do nothing: it is in none of the groups that allow something \
                 (admin, operator, observer, ci), and no policy is configured"
            );
        }
    }
    let owner = OwnerToken::open(data_dir)?;
    let tokens = Tokens::open(data_dir, registered.iter().cloned(), clock)?;
    Ok((Identities::new(owner, tokens), registered))
}

/// Who decides, and the files that it follows.
pub(super) fn policies(
    config: &Settings,
    clock: Arc<dyn Clock>,
) -> Result<(PolicyFiles, Arc<CedarAuthorizer>), ProcessError> {
    let paths = config.policy.paths();
    let sources = paths.read()?;
    let owner = (
        TenantId::parse(OWNER_TENANT)?,
        PrincipalId::parse(OWNER_ID)?,
    );
    let authorizer = Arc::new(CedarAuthorizer::open(owner, &sources)?);
    let files = PolicyFiles::new(paths, &sources, authorizer.clone(), clock);
    Ok((files, authorizer))
}

/// The TLS files, if there are any.
pub(super) fn tls_files(
    config: &Settings,
    clock: Arc<dyn Clock>,
) -> Result<Option<TlsFiles>, ProcessError> {
    let Some(tls) = config.tls.settings()? else {
        return Ok(None);
    };
    Ok(Some(TlsFiles::open(paths(tls), clock)?))
}

fn paths(tls: TlsSettings) -> TlsPaths {
    TlsPaths {
        cert: tls.cert_file,
        key: tls.key_file,
        clients: tls.clients,
        alpn: ALPN.map(<[u8]>::to_vec).into(),
    }
}

/// What keeps strangers from the listener.
pub(super) fn guard(files: Option<&TlsFiles>, registered: &[Registered]) -> Guard {
    Guard {
        tls: files.map(|files| Tls::new(files.current())),
        identities: !registered.is_empty(),
    }
}
