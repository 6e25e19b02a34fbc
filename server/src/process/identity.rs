//! What a start makes of `[identity]`, `[policy]` and `[tls]`: who may call, what they may do, over what.

use std::path::Path;
use std::sync::Arc;

use sessionplane_core::domain::ids::{PrincipalId, TenantId};
use sessionplane_core::ports::clock::Clock;

use super::ProcessError;
use crate::adapters::authn::jwt::{Issuer, Issuers, KeyFile, KeySource, KeyUrl};
use crate::adapters::authn::{
    Certificates, Certified, Identities, OWNER_ID, OWNER_TENANT, OwnerToken, Registered, TokenBook,
    Tokens,
};
use crate::adapters::authz::{CedarAuthorizer, PolicyFiles, Role};
use crate::adapters::tls_files::{TlsFiles, TlsPaths};
use crate::config::{ConfigError, KeyPlace, Settings, TlsSettings};
use crate::grpc::listener::{Address, Guard};
use crate::grpc::tls::{ALPN, Tls};

/// Everybody who can be known, and the principals that are configured.
pub(super) fn identities(
    config: &Settings,
    (data_dir, address): (&Path, &Address),
    clock: &Arc<dyn Clock>,
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
    let tokens = Tokens::open(data_dir, registered.iter().cloned(), clock.clone())?;
    // What the configuration said that is wrong was told when it was read, as above.
    let (certified, _wrong) = config.identity.certified();
    warn_of_unasked(config, &certified);
    let loopback = address.lacks(false, false).is_none();
    let (forwarding, _wrong) = config.identity.forwarding(loopback);
    let certificates = Certificates::new(certified, forwarding);
    let issuers = issuers(config, clock)?;
    let identities = Identities::new(owner, tokens)
        .with_certificates(certificates)
        .with_issuers(issuers);
    Ok((identities, registered))
}

/// The issuers of JWTs, and who is who by them. What was wrong with them was told as above.
fn issuers(config: &Settings, clock: &Arc<dyn Clock>) -> Result<Issuers, ProcessError> {
    let (all, _wrong) = config.identity.issuers();
    let all = all.into_iter().map(|(settings, place)| {
        let source: Arc<dyn KeySource> = match place {
            KeyPlace::File(path) => Arc::new(KeyFile(path)),
            KeyPlace::Url(url, ca) => {
                Arc::new(KeyUrl::new(&url, ca.as_ref()).map_err(|problem| {
                    let key = format!("identity.issuers.{}.jwks_url", settings.name);
                    ConfigError::Value { key, problem }
                })?)
            }
        };
        Ok(Issuer::new(settings, source, clock.clone()))
    });
    let all = all.collect::<Result<Vec<_>, ConfigError>>()?;
    let (claimed, _wrong) = config.identity.claimed();
    Ok(Issuers::new(all, claimed, clock.clone()))
}

/// Warns of certificates that nobody is ever asked for.
fn warn_of_unasked(config: &Settings, certified: &[Certified]) {
    let asks = config.tls.settings().ok().flatten();
    let asks = asks.is_some_and(|tls| tls.clients.is_some());
    let forwards = config.identity.forwarded.loopback_only;
    if let (false, false, Some(first)) = (asks, forwards, certified.first()) {
        tracing::warn!(
            principal = first.holder.id.as_str(),
            "the certificates of principals let nobody in: clients are not asked for one \
             (tls.client_auth)"
        );
    }
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
