//! After each start the chains of audit records are whole: from their genesis to their noted end, each
//! record what was sealed.

use sessionplane_core::domain::audit::{Link, Sealed, Verifier, genesis};
use sessionplane_core::ports::audit_trail::AuditTrail;
use sessionplane_server::adapters::memory::MemoryStore;

/// Most records that are read at a time.
const PAGE: usize = 64;

/// C56: verifies every chain of a store.
pub(crate) async fn are_whole(store: &MemoryStore) {
    for tenant in store.chains(None, PAGE).await.expect("the chains") {
        let hash = genesis(store.store_id(), &tenant);
        let mut verifier = Verifier::after(tenant.as_str(), Link { seq: 0, hash });
        loop {
            let links = store.links(&tenant, verifier.at().seq, PAGE).await;
            let links = links.expect("the links");
            if links.is_empty() {
                break;
            }
            for link in links {
                let record = link.record.expect("a record");
                let sealed = Sealed {
                    record,
                    previous: link.previous,
                    hash: link.hash,
                };
                verifier.next(&sealed).expect("a link of the chain");
            }
        }
        let end = store.chain_end(&tenant).await.expect("the end");
        verifier
            .ends(end.expect("a chain has an end"))
            .expect("its end");
    }
}
