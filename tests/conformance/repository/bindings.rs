//! Request bindings: one acceptance each, kept while they are needed.

use sessionplane_core::domain::binding::{BindingKey, Method};
use sessionplane_core::domain::time::Timestamp;
use sessionplane_core::ports::repository::CommitError;

use super::script::{Script, binding_key};
use super::{Store, Subject};

/// Two calls with one request id: whatever sessions they would reach, one is accepted.
pub(crate) async fn c03_one_of_many_binds_a_request_id(subject: &mut dyn Subject) {
    let mut calls = Vec::new();
    for n in 0..32 {
        let store = subject.store();
        let script = Script::new(n).named("fix");
        let token = store.mint().await.unwrap();
        let mut admit = script.admit(token, "go");
        script.bind(&mut admit, binding_key("acme", "call"));
        calls.push(tokio::spawn(async move {
            (script.id(), store.commit(admit).await)
        }));
    }
    let mut accepted = Vec::new();
    for call in calls {
        match call.await.unwrap() {
            (id, Ok(())) => accepted.push(id),
            // The repeat is told before the name: it joins what it started.
            (_, Err(CommitError::AlreadyBound)) => {}
            (_, Err(other)) => panic!("{other}"),
        }
    }
    let [winner] = accepted[..] else {
        panic!("{accepted:?} were accepted");
    };
    let store = subject.store();
    let bound = store.binding(&binding_key("acme", "call")).await.unwrap();
    assert_eq!(bound.map(|binding| binding.session), Some(winner));

    let script = Script::new(99);
    let mut twice = script.admit(store.mint().await.unwrap(), "go");
    script.bind(&mut twice, binding_key("acme", "twice"));
    script.bind(&mut twice, binding_key("acme", "twice"));
    assert_eq!(store.commit(twice).await, Err(CommitError::AlreadyBound));
}

/// Tenant, principal, method and request id all count.
pub(crate) async fn c03_a_binding_is_found_by_every_part_of_its_key(subject: &mut dyn Subject) {
    let store = subject.store();
    let base = binding_key("acme", "call");
    let others = [
        binding_key("globex", "call"),
        BindingKey {
            principal: "bob".parse().unwrap(),
            ..base.clone()
        },
        BindingKey {
            method: Method::Dispatch,
            ..base.clone()
        },
        binding_key("acme", "call2"),
    ];
    let script = Script::new(1);
    let mut admit = script.admit(store.mint().await.unwrap(), "go");
    script.bind(&mut admit, base.clone());
    store.commit(admit.clone()).await.unwrap();
    let bound = store.binding(&base).await.unwrap();
    assert_eq!(bound.as_ref(), admit.bindings.first());
    for (n, other) in (2..).zip(others) {
        assert_eq!(store.binding(&other).await, Ok(None));
        let script = Script::new(n);
        let mut admit = script.admit(store.mint().await.unwrap(), "go");
        script.bind(&mut admit, other.clone());
        store.commit(admit.clone()).await.unwrap();
        let bound = store.binding(&other).await.unwrap();
        assert_eq!(bound.as_ref(), admit.bindings.first());
    }
}

async fn bound(store: &dyn Store, n: u64, now: u64) -> Script {
    let mut script = Script::new(n);
    script.now = now;
    let mut admit = script.admit(store.mint().await.unwrap(), "go");
    script.bind(&mut admit, binding_key("acme", &format!("call-{n}")));
    script.write(store, admit).await.unwrap();
    script
}

async fn kept(store: &dyn Store, n: u64) -> bool {
    let key = binding_key("acme", &format!("call-{n}"));
    store.binding(&key).await.unwrap().is_some()
}

/// A binding lives while its run does, and a whole retention after the run has settled.
pub(crate) async fn c03_a_sweep_keeps_what_an_active_run_needs(subject: &mut dyn Subject) {
    let store = subject.store();
    let at = Timestamp::from_millis;
    let mut long = bound(&*store, 1, 100).await;
    let mut short = bound(&*store, 2, 100).await;
    let settle = short.settle();
    short.write(&*store, settle).await.unwrap();
    bound(&*store, 3, 900).await;

    assert_eq!(
        store.sweep_bindings(at(100), 10).await,
        Ok(0),
        "none is older"
    );
    assert_eq!(store.sweep_bindings(at(500), 10).await, Ok(1));
    assert!(!kept(&*store, 2).await);
    assert!(kept(&*store, 1).await && kept(&*store, 3).await);

    long.now = 600;
    let settle = long.settle();
    long.write(&*store, settle).await.unwrap();
    assert_eq!(
        store.sweep_bindings(at(600), 10).await,
        Ok(0),
        "just settled"
    );
    assert!(kept(&*store, 1).await);
    assert_eq!(store.sweep_bindings(at(601), 10).await, Ok(1));
    assert!(!kept(&*store, 1).await);
    assert_eq!(store.sweep_bindings(at(u64::MAX), 10).await, Ok(0));
    assert!(kept(&*store, 3).await);

    let mut again = Script::new(9);
    let mut admit = again.admit(store.mint().await.unwrap(), "go");
    again.bind(&mut admit, binding_key("acme", "call-2"));
    again
        .write(&*store, admit)
        .await
        .expect("a forgotten id is free again");
}

/// However many active runs are older, a sweep finds what is behind them.
pub(crate) async fn c03_a_sweep_gets_past_any_number_of_active_runs(subject: &mut dyn Subject) {
    let store = subject.store();
    for n in 0..600 {
        bound(&*store, n, 100).await;
    }
    for n in 600..603 {
        let mut settled = bound(&*store, n, 200).await;
        let settle = settled.settle();
        settled.write(&*store, settle).await.unwrap();
    }
    let far = Timestamp::from_millis(u64::MAX);
    assert_eq!(store.sweep_bindings(far, 2).await, Ok(2));
    assert_eq!(store.sweep_bindings(far, 2).await, Ok(1));
    assert_eq!(store.sweep_bindings(far, 2).await, Ok(0));
    assert!(kept(&*store, 0).await && !kept(&*store, 602).await);
}

/// A sweep is bounded, so that it never holds other commits up for long.
pub(crate) async fn c03_a_sweep_takes_no_more_than_it_is_told_oldest_first(
    subject: &mut dyn Subject,
) {
    let store = subject.store();
    for n in 0..7 {
        let mut script = bound(&*store, n, 100 + 10 * n).await;
        let settle = script.settle();
        script.write(&*store, settle).await.unwrap();
    }
    let far = Timestamp::from_millis(u64::MAX);
    assert_eq!(store.sweep_bindings(far, 0).await, Ok(0));
    assert_eq!(store.sweep_bindings(far, 3).await, Ok(3));
    for n in 0..7 {
        assert_eq!(kept(&*store, n).await, n >= 3, "{n}");
    }
    let (one, other) = tokio::join!(store.sweep_bindings(far, 3), store.sweep_bindings(far, 3));
    assert_eq!(one.unwrap() + other.unwrap(), 4);
    assert_eq!(store.sweep_bindings(far, 3).await, Ok(0));
}

/// Nothing settles what was over in one commit: its binding goes when it is old.
pub(crate) async fn c03_a_binding_without_a_run_is_kept_by_its_age_alone(
    subject: &mut dyn Subject,
) {
    let store = subject.store();
    let at = Timestamp::from_millis;
    let mut script = bound(&*store, 1, 100).await;
    let settle = script.settle();
    script.write(&*store, settle).await.unwrap();
    for (word, now) in [("early", 200), ("late", 900)] {
        script.now = now;
        let mut choose = script.choose(store.mint().await.unwrap(), word);
        script.bind(&mut choose, binding_key("acme", word));
        script.write(&*store, choose.clone()).await.unwrap();
        let found = store.binding(&binding_key("acme", word)).await.unwrap();
        assert_eq!(found.as_ref(), choose.bindings.first());
        assert_eq!(found.unwrap().answer.run(), None);
    }
    // A run that goes on keeps nothing but its own.
    script.now = 950;
    let admit = script.admit(store.mint().await.unwrap(), "go");
    script.write(&*store, admit).await.unwrap();
    let there = |word| {
        let (store, key) = (subject.store(), binding_key("acme", word));
        async move { store.binding(&key).await.unwrap().is_some() }
    };
    assert_eq!(store.sweep_bindings(at(200), 9).await, Ok(1), "the run's");
    assert!(there("early").await, "none is older");
    assert_eq!(store.sweep_bindings(at(201), 9).await, Ok(1));
    assert!(!there("early").await && there("late").await);
    assert_eq!(store.sweep_bindings(at(u64::MAX), 9).await, Ok(1));
    assert!(!there("late").await);
}
