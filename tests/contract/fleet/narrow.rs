//! What is looked at for a page: the sessions of the narrowest index, and none of them for every page again.

use futures_util::future::join_all;
use sessionplane_core::contract::fleet::{CreateSession, ListSessions, SessionOrder};

use super::crew;
use crate::house::House;
use crate::suite::fleet::crew::{Crew, labels, names, new};
use crate::suite::world::quick;

/// So many that no page looks at all of them.
const MANY: usize = 2100;

async fn make(crew: &Crew, count: usize, request: impl Fn(usize) -> CreateSession) {
    join_all((0..count).map(|number| crew.create(request(number)))).await;
}

/// The names on each page, and how many sessions were read for all of them.
async fn pages(
    house: &House,
    crew: &Crew,
    (filter, order, page_size): (&str, SessionOrder, u32),
) -> (Vec<Vec<String>>, usize) {
    let before = house.refusal.sessions_found();
    let (mut pages, mut page_token) = (Vec::new(), None);
    loop {
        let request = ListSessions {
            filter: filter.to_owned(),
            order,
            page_token,
            page_size,
        };
        let page = crew.try_page(request).await.expect("a page");
        pages.push(names(&page.sessions));
        page_token = page.next;
        if page_token.is_none() {
            return (pages, house.refusal.sessions_found() - before);
        }
    }
}

/// Each once, and nothing else.
fn all(pages: &[Vec<String>], expected: usize, prefix: &str) {
    let mut found: Vec<_> = pages.concat();
    assert!(found.iter().all(|it| it.starts_with(prefix)));
    found.sort();
    found.dedup();
    assert_eq!((found.len(), pages.concat().len()), (expected, expected));
}

#[tokio::test(flavor = "multi_thread")]
async fn c47_a_few_labelled_sessions_are_found_at_once_beside_many_paused_ones() {
    let (house, crew) = crew(quick());
    let paused = |number| CreateSession {
        paused: true,
        ..new(&format!("p-{number}"))
    };
    make(&crew, MANY, paused).await;
    let labelled = |number| CreateSession {
        labels: labels(&["team=net"]),
        paused: number == 0,
        ..new(&format!("l-{number}"))
    };
    make(&crew, 3, labelled).await;
    let asked = ("labels.team = net", SessionOrder::Attention, 0);
    let (found, read) = pages(&house, &crew, asked).await;
    all(&found, 3, "l-");
    assert_eq!(found.len(), 1, "one page");
    assert_eq!(found[0][0], "l-0", "what is paused comes first");
    assert!(read < 200, "{read}");
    // The other way around: few of many labelled ones are paused.
    let asked = (
        "name = \"l-*\" AND paused = true",
        SessionOrder::Attention,
        0,
    );
    let (found, read) = pages(&house, &crew, asked).await;
    all(&found, 1, "l-");
    assert!(found.len() == 1 && read < 200, "{read}");
}

#[tokio::test(flavor = "multi_thread")]
async fn c47_a_name_prefix_is_read_once_in_every_order() {
    let (house, crew) = crew(quick());
    make(&crew, MANY, |number| new(&format!("n-{number}"))).await;
    make(&crew, 20, |number| new(&format!("few-{number}"))).await;
    for order in [
        SessionOrder::Id,
        SessionOrder::IdDescending,
        SessionOrder::Attention,
    ] {
        let (found, read) = pages(&house, &crew, ("name = \"few-*\"", order, 10)).await;
        all(&found, 20, "few-");
        assert!(found.len() <= 3 && read < 500, "{order:?}: {read}");
        let (found, read) = pages(&house, &crew, ("name = \"n-*\"", order, 500)).await;
        all(&found, MANY, "n-");
        // To see that they are many, and then all of them; not for each page again.
        assert!(read < 3 * MANY, "{order:?}: {read}");
    }
}
