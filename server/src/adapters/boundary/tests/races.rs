//! What is swapped between a check and its use. A thread swaps as fast as it can; whatever is read
//! meanwhile is what lies inside, or a refusal.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::*;

/// Swaps two names for as long as `work` runs.
fn swapping(a: &Path, b: &Path, work: impl FnOnce()) {
    let over = Arc::new(AtomicBool::new(false));
    let (a, b) = (a.to_owned(), b.to_owned());
    let heard = over.clone();
    let swapper = std::thread::spawn(move || {
        let mut swaps = 0_u64;
        while !heard.load(Ordering::Relaxed) {
            renameat_with(CWD, &a, CWD, &b, RenameFlags::EXCHANGE).expect("swapped");
            swaps += 1;
        }
        swaps
    });
    work();
    over.store(true, Ordering::Relaxed);
    assert!(swapper.join().expect("it ends") > 0, "nothing was swapped");
}

/// Longest time in which what is swapped has to be met as it is inside: on a busy machine either
/// thread may wait long for its turn, and any number of reads may meet the same state.
const MET_WITHIN: Duration = Duration::from_secs(60);
/// As many reads are enough, once one of them succeeded.
const READS: u32 = 20_000;

#[allow(clippy::disallowed_methods, reason = "the test's own deadline")]
fn now() -> Instant {
    Instant::now()
}

/// Reads until both the file inside and a refusal were met, or often enough. It is met inside at
/// least once.
fn reads_only(boundary: &Boundary, path: &str, inside: &str) {
    let (mut read_it, mut refused) = (0, 0);
    let since = now();
    while (read_it <= 500 || refused <= 500) && (read_it == 0 || read_it + refused < READS) {
        match read(boundary, path) {
            Ok(text) => {
                assert_eq!(text, inside, "it led out");
                read_it += 1;
            }
            Err(_) => refused += 1,
        }
        assert!(
            read_it > 0 || since.elapsed() < MET_WITHIN,
            "it was never read"
        );
    }
}

#[test]
fn c53_b48_a_folder_that_is_swapped_for_a_link_never_leads_out() {
    let scene = Scene::new();
    scene.write("turn/secret.txt", "harmless");
    scene.link(&scene.outside, "link");
    let (turn, link) = (scene.inside.join("turn"), scene.inside.join("link"));
    swapping(&turn, &link, || {
        reads_only(&scene.boundary(), "turn/secret.txt", "harmless");
        reads_only(&scene.boundary(), "turn/../turn/secret.txt", "harmless");
    });
}

#[test]
fn c53_b48_a_file_that_is_swapped_for_a_link_never_leads_out() {
    let scene = Scene::new();
    scene.write("turn", "harmless");
    scene.link("../out/secret.txt", "link");
    let (turn, link) = (scene.inside.join("turn"), scene.inside.join("link"));
    swapping(&turn, &link, || {
        reads_only(&scene.boundary(), "turn", "harmless");
    });
}

#[test]
fn c53_b48_a_folder_that_is_moved_out_and_in_again_leads_nowhere() {
    let scene = Scene::new();
    scene.write("deep/er/file", "harmless");
    fs::create_dir_all(scene.outside.join("er")).expect("made");
    fs::write(scene.outside.join("file"), SECRET).expect("written");
    let (deeper, moved) = (scene.inside.join("deep"), scene.outside.join("deep"));
    fs::create_dir(&moved).expect("made");
    swapping(&deeper, &moved, || {
        reads_only(&scene.boundary(), "deep/er/../er/file", "harmless");
    });
}

#[test]
fn c53_b48_a_link_whose_target_is_swapped_never_shows_what_is_hidden() {
    let scene = Scene::new();
    scene.write("data/token", SECRET);
    scene.write("open/token", "harmless");
    scene.link("data", "one");
    scene.link("open", "turn");
    let hidden = scene.inside.join("data");
    let boundary = scene.boundary().hiding(&hidden).expect("a folder");
    let (turn, one) = (scene.inside.join("turn"), scene.inside.join("one"));
    swapping(&turn, &one, || {
        reads_only(&boundary, "turn/token", "harmless");
    });
}

/// A folder to work in is looked up like every other, and what was opened stays inside.
fn places_lead_nowhere() {
    let scene = Scene::new();
    scene.write("deep/er/file", "harmless");
    fs::create_dir_all(scene.outside.join("er")).expect("made");
    fs::write(scene.outside.join("er/file"), SECRET).expect("written");
    scene.link(&scene.outside, "link");
    scene.link("../out", "beside");
    scene.link("/proc/self/cwd", "magic");
    scene.write("data/er/file", SECRET);
    let hiding = scene.boundary().hiding(&scene.inside.join("data"));
    let boundary = hiding.expect("hidden");
    for out in [
        "..",
        "/",
        "/etc",
        "link",
        "link/er",
        "beside",
        "beside/er",
        "magic",
        "../out/er",
        "data",
        "data/er",
        "deep/../../out/er",
    ] {
        let found = boundary.beneath(Path::new(out)).map(|(_, real)| real);
        assert!(found.is_err(), "{out}: {found:?}");
    }
    let root = Boundary::open(Path::new("/"), Access::ReadOnly).expect("the root");
    let mounted = root.beneath(Path::new("proc")).map(|(_, real)| real);
    assert_eq!(mounted, Err(Refusal::Mounted));
    let (deep, link) = (scene.inside.join("deep"), scene.inside.join("link"));
    swapping(&deep, &link, || {
        works_only(&boundary, "deep/er", "harmless");
    });
    // Which of the two is which by now nobody knows.
    scene.write("turn/er/file", "harmless");
    let (turn, moved) = (scene.inside.join("turn"), scene.outside.join("moved"));
    fs::create_dir(&moved).expect("made");
    swapping(&turn, &moved, || {
        works_only(&boundary, "turn/er", "harmless");
    });
}

/// Opens a folder until it was met inside, and refused, or often enough; what it holds lies inside.
fn works_only(boundary: &Boundary, path: &str, inside: &str) {
    let (mut found, mut refused) = (0, 0);
    let since = now();
    while (found <= 200 || refused <= 200) && (found == 0 || found + refused < READS) {
        match boundary.beneath(Path::new(path)) {
            Ok((folder, _)) => {
                assert_eq!(read(&folder, "file").as_deref(), Ok(inside), "it led out");
                found += 1;
            }
            Err(_) => refused += 1,
        }
        assert!(
            found > 0 || since.elapsed() < MET_WITHIN,
            "it was never met"
        );
    }
}

#[test]
fn c53_b48_no_folder_to_work_in_is_outside_whatever_is_swapped() {
    places_lead_nowhere();
}

/// The same without `openat2`, as on an old kernel or in a sandbox that does not know it.
#[test]
fn c53_b48_an_old_kernel_leads_no_further() {
    step::OLD_KERNEL.set(true);
    escapes::c53_b48_no_path_leads_out_by_its_words();
    escapes::c53_b48_no_link_leads_out();
    escapes::c53_b48_a_link_that_stays_inside_is_its_target();
    escapes::c53_b48_links_to_nothing_and_in_a_circle_are_missing();
    escapes::c53_b48_no_magic_link_of_procfs_leads_out();
    escapes::c53_b48_nothing_that_is_mounted_inside_is_read();
    escapes::c53_b48_what_is_hidden_is_hidden_under_every_name();
    c53_b48_a_folder_that_is_swapped_for_a_link_never_leads_out();
    c53_b48_a_file_that_is_swapped_for_a_link_never_leads_out();
    places_lead_nowhere();
    step::OLD_KERNEL.set(false);
}
