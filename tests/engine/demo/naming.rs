//! What a name or a word of a question stands for.

use super::*;

/// The answer to a text, in a folder.
async fn answer_in(folder: TempDir, text: &str) -> String {
    let bench = Bench::new(on(folder, Pace::NONE));
    let mut opened = bench.open().await;
    said(&ask(&mut opened, text).await)
}

/// Who asks to see a name is told of what stands there, and of nothing else that is called alike.
#[cfg(unix)]
#[tokio::test(start_paused = true)]
async fn b48_what_stands_at_the_very_path_is_meant_and_told_why_it_is_not_shown() {
    use std::os::unix::fs::symlink;
    let folder = folder();
    for (to, name) in [("/etc/hostname", "host"), ("nothing", "gone")] {
        symlink(to, folder.path().join(name)).expect("linked");
    }
    write(folder.path(), "deep/host", "elsewhere\n");
    let bench = Bench::new(on(folder, Pace::NONE));
    let mut opened = bench.open().await;
    for (question, expected) in [
        (
            "/show host",
            "I cannot show `host`: it leads out of the folder.",
        ),
        (
            "show gone",
            "`gone`: it is a link to something that is not there.",
        ),
        ("/show target", "`target`: it is a folder, not a file."),
        ("/show deep/host", "`deep/host:1`, line 1 of 1 line:"),
        // One word of a sentence is no name.
        ("show the gone boats", "so I searched for it."),
    ] {
        let answer = said(&ask(&mut opened, question).await);
        assert!(answer.contains(expected), "{question}: {answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn where_something_is_used_asks_for_nothing_but_it() {
    let answer = answer_in(folder(), "where is Gate used?").await;
    assert!(
        answer.starts_with("The best place is `src/gate.rs:"),
        "{answer}"
    );
}

#[tokio::test(start_paused = true)]
async fn where_something_is_done_is_told_by_code_before_what_speaks_or_asks_of_it() {
    for text in [
        "where is the discount computed?",
        "where is the discount computed",
        "which file computes the discount?",
        "where does the shop compute the discount?",
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let readme = "# Shop\n\nHere the shop says how the discount is computed.\n\nAsk: \
                      where is the discount computed?\n";
        write(folder.path(), "README.md", readme);
        let page = "# Discount\n\nThe discount of the shop is computed from the total.\n";
        write(folder.path(), "docs/discount.md", page);
        let code = "\"\"\"Prices.\"\"\"\n\n\ndef total(items):\n    return sum(items)\n\n\n\
                    def discount(total):\n    return total // 10\n";
        write(folder.path(), "shop/pricing.py", code);
        let answer = answer_in(folder, text).await;
        assert!(
            answer
                .starts_with("The best place is `shop/pricing.py:8` (in `def discount`), without"),
            "{text}: {answer}"
        );
        assert!(!answer.contains("README.md:5"), "{text}: {answer}");
    }
    let folder = folder();
    write(
        folder.path(),
        "docs/start.md",
        "The gate is described here.\n",
    );
    let answer = answer_in(folder, "where is the gate described?").await;
    assert!(answer.contains("`docs/start.md:1`"), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn how_to_do_something_is_told_by_notes_before_code() {
    let folder = folder();
    write(folder.path(), "docs/start.md", "Run the tests so.\n");
    write(folder.path(), "src/x.rs", "fn run_tests() {}\n");
    let answer = answer_in(folder, "how do I run the tests?").await;
    assert!(
        answer.starts_with("The best place is `docs/start.md:1`"),
        "{answer}"
    );
}
