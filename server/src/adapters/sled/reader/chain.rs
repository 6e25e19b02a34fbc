//! Reading chains of audit records. Links that are there never change; what may be read is up to the
//! newest, whose row is shown once its round is synced.

use sessionplane_core::domain::audit::{Link, Series};
use sessionplane_core::domain::ids::{SessionId, TenantId};
use sessionplane_core::domain::provenance::Digest;
use sessionplane_core::ports::audit_trail::StoredLink;
use sessionplane_core::ports::repository::ReadError;

use super::Reader;
use crate::adapters::sled::convert::{ChainEnd, ChainLink, Place, SealedAudit};
use crate::adapters::sled::keys;
use crate::adapters::sled::round::fetch;
use crate::adapters::sled::seal;

impl Reader {
    pub(in crate::adapters::sled) fn chain_end(
        &self,
        tenant: &TenantId,
    ) -> Result<Option<Link>, ReadError> {
        let end: Option<ChainEnd> = fetch(self, &keys::chain_end(tenant))?;
        Ok(end.map(|ChainEnd(link)| link))
    }

    pub(in crate::adapters::sled) fn chains(
        &self,
        after: Option<&TenantId>,
        max: usize,
    ) -> Result<Vec<TenantId>, ReadError> {
        let ends = keys::chain_ends();
        let mut from = Some(after.map_or_else(
            || ends.clone(),
            |tenant| keys::after(&keys::chain_end(tenant)),
        ));
        let mut tenants = Vec::new();
        while let Some(first) = from {
            let (page, next) = self.page(&ends, &first)?;
            let found = page.keys().filter_map(|key| keys::chained(key));
            tenants.extend(found.map(|(tenant, _)| tenant));
            if tenants.len() >= max {
                break;
            }
            from = next;
        }
        tenants.truncate(max);
        Ok(tenants)
    }

    pub(in crate::adapters::sled) fn links(
        &self,
        tenant: &TenantId,
        after: u64,
        max: usize,
    ) -> Result<Vec<StoredLink>, ReadError> {
        let Some(end) = self.chain_end(tenant)? else {
            return Ok(Vec::new());
        };
        let last = end.seq.min(after.saturating_add(max as u64));
        if after >= last {
            return Ok(Vec::new());
        }
        let mut previous = match after {
            0 => seal::beginning(self, tenant)?.hash,
            after => self.link(tenant, after)?.map_or(NO_HASH, |link| link.hash),
        };
        let mut links = Vec::new();
        for seq in after + 1..=last {
            let (hash, record) = match self.link(tenant, seq) {
                Ok(Some(link)) => match seal::linked(self, seq, &link.of) {
                    Ok(record) => (link.hash, record),
                    Err(ReadError::Damaged { key, problem }) => {
                        (link.hash, Err(format!("{key}: {problem}")))
                    }
                    Err(error) => return Err(error),
                },
                Ok(None) => (NO_HASH, Err("its link is missing".to_owned())),
                Err(ReadError::Damaged { problem, .. }) => (NO_HASH, Err(problem)),
                Err(error) => return Err(error),
            };
            links.push(StoredLink {
                seq,
                previous,
                hash,
                record,
            });
            previous = hash;
        }
        Ok(links)
    }

    fn link(&self, tenant: &TenantId, seq: u64) -> Result<Option<ChainLink>, ReadError> {
        fetch(self, &keys::chain_link(tenant, seq))
    }

    /// Numbers of a session's records after `after`. In each series they grow, so that where to begin
    /// is searched for, not counted up to.
    pub(in crate::adapters::sled) fn links_of_session(
        &self,
        session: SessionId,
        after: u64,
        max: usize,
    ) -> Result<Vec<u64>, ReadError> {
        let mut found = Vec::new();
        for series in [Series::Session, Series::Metadata] {
            // The first revision is that of the creation, which the other series tells.
            let first = match series {
                Series::Session => 1,
                Series::Metadata => 2,
            };
            let mut ordinal = self.first_after(session, series, first, after)?;
            let mut taken = 0;
            while taken < max
                && let Some(seq) = self.seq(session, series, ordinal)?
            {
                found.push(seq);
                taken += 1;
                ordinal += 1;
            }
        }
        found.sort_unstable();
        found.truncate(max);
        Ok(found)
    }

    /// The number of the first record of a series, from `first` on, that is in the chain after `after`
    /// or is not there.
    fn first_after(
        &self,
        session: SessionId,
        series: Series,
        first: u64,
        after: u64,
    ) -> Result<u64, ReadError> {
        let is_after = |ordinal| {
            let seq = self.seq(session, series, ordinal)?;
            Ok::<_, ReadError>(seq.is_none_or(|seq| seq > after))
        };
        let (mut low, mut step) = (first, 1);
        while !is_after(low + step - 1)? {
            low += step;
            step *= 2;
        }
        // Before `low` all are up to `after`, and the one at `low + step - 1` is beyond.
        let mut high = low + step - 1;
        while low < high {
            let middle = low + (high - low) / 2;
            if is_after(middle)? {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        Ok(low)
    }

    fn seq(
        &self,
        session: SessionId,
        series: Series,
        ordinal: u64,
    ) -> Result<Option<u64>, ReadError> {
        let place = Place {
            session,
            series,
            ordinal,
        };
        let record: Option<SealedAudit> = fetch(self, &keys::placed(place))?;
        Ok(record.and_then(|record| record.seq))
    }
}

/// Stands for a hash that cannot be read.
const NO_HASH: Digest = Digest([0; 32]);
