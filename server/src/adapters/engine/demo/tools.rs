//! The agent's tools on files: list the folder, search it, read around a line, count.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use futures_util::FutureExt as _;
use serde_json::json;

use super::count::{Counted, count};
use super::files::{Folder, Listing, Page, Unread, parents};
use super::focus::Focus;
use super::lines::Lines;
use super::page::{enclosing, excerpt, shown, shown_path};
use super::question::{Form, Question, Role, Word};
use super::rank::{Place, Ranking};
use super::scan::{Found, scan};
use super::voice::{Stop, Voice};
use super::wish::Wish;

/// Files of one part of a search, after which commands are heard and progress is told.
const PART_FILES: usize = 48;
/// How many parts are slowed down for watching; later ones take the time they take.
const WATCHED_PARTS: usize = 8;
/// Most bytes that one search reads.
const MOST_BYTES: u64 = 128 * 1024 * 1024;
/// The longest that one search takes.
const LONGEST: Duration = Duration::from_secs(10);
/// How long the folder is listed.
const LISTED_FOR: Duration = Duration::from_secs(5);
/// Lines that are ranked at a time: some hundredths of a second.
const RANKED_LINES: usize = 20_000;
/// How long nothing is told of a work that goes on.
const QUIET: Duration = Duration::from_secs(2);
/// How many places a search gives back.
const PLACES: usize = 8;
/// Most lines of the overview that `list_files` gives back.
const OVERVIEW_LINES: usize = 40;

/// A place and what stands there.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Sight {
    pub(super) place: Place,
    /// Its line.
    pub(super) line: String,
    /// What encloses it.
    pub(super) inside: Option<String>,
    /// The lines around it.
    pub(super) excerpt: String,
}

/// Lists the folder's files.
pub(super) async fn list(voice: &mut Voice, folder: &Folder) -> Result<Listing, Stop> {
    let call = voice.call("list", &json!({"path": "."})).await?;
    let reader = folder.clone();
    match voice
        .work_within(LISTED_FOR, move |stop| reader.list(stop))
        .await?
    {
        Ok(listing) => {
            voice.give_back(call, overview(&listing), false).await?;
            Ok(listing)
        }
        Err(error) => {
            voice.give_back(call, error.to_string(), true).await?;
            Err(Stop::folder(&error))
        }
    }
}

/// Looks whether what somebody asks to see stands at the very path that they typed, though it is not
/// among the files that are listed: a link that leads out, or what is ignored.
pub(super) async fn look_up(
    voice: &mut Voice,
    folder: &Folder,
    question: &mut Question,
) -> Result<(), Stop> {
    if question.wish != Wish::Show {
        return Ok(());
    }
    // A plain word among others is one of a sentence, and no name.
    let alone = question.words.len() == 1;
    let is_name = move |word: &Word| word.role == Role::Seek && (alone || word.form == Form::Path);
    let (reader, mut words) = (folder.clone(), std::mem::take(&mut question.words));
    question.words = voice
        .work_within(LISTED_FOR, move |_| {
            for word in words.iter_mut().filter(|word| is_name(word)) {
                word.stands = reader.has(&word.text);
            }
            words
        })
        .await?;
    Ok(())
}

/// What bounds a tool that goes through many files: between two parts of them commands are heard and
/// progress is told.
struct Parts {
    number: usize,
    over: futures_util::future::Fuse<sessionplane_core::ports::clock::BoxFuture<()>>,
}

impl Parts {
    fn new(voice: &Voice) -> Self {
        Self {
            number: 0,
            over: voice.link.timer(LONGEST).fuse(),
        }
    }

    /// Whether there is time and room for another part after so many bytes.
    async fn go_on(&mut self, voice: &mut Voice, bytes: u64) -> Result<bool, Stop> {
        if bytes > MOST_BYTES || (&mut self.over).now_or_never().is_some() {
            return Ok(false);
        }
        if self.number < WATCHED_PARTS {
            voice.link.pause(voice.pace.tool / 4).await?;
        }
        self.number += 1;
        Ok(true)
    }
}

/// Counts the files in focus.
pub(super) async fn count_files(
    voice: &mut Voice,
    folder: &Folder,
    focus: &Focus,
    listing: &Listing,
) -> Result<Counted, Stop> {
    let call = voice.call("count", &json!({"in": focus.within})).await?;
    let files = focus.files(listing);
    let mut counted = Counted::default();
    // What was not listed is not counted either.
    counted.cut = listing.cut;
    let mut parts = Parts::new(voice);
    for part in files.chunks(PART_FILES) {
        if !parts.go_on(voice, counted.bytes).await? {
            counted.cut = true;
            break;
        }
        let (reader, part) = (folder.clone(), part.to_vec());
        let more = voice.work(move |stop| count(&reader, &part, stop)).await?;
        counted.add(more);
        voice.progress(&call, counted.line()).await?;
    }
    voice.give_back(call, counted.line(), false).await?;
    Ok(counted)
}

/// Searches the files in focus, and looks at the best places.
pub(super) async fn search(
    voice: &mut Voice,
    folder: &Folder,
    focus: &Focus,
    listing: &Listing,
) -> Result<(Found, Vec<Sight>), Stop> {
    let terms: Vec<&str> = focus.terms.iter().map(|term| term.text.as_str()).collect();
    let input = json!({"terms": terms, "in": focus.within, "not_in": focus.without});
    let call = voice.call("search", &input).await?;
    let files = focus.files(listing);
    let mut found = Found {
        // What was not listed is not searched either.
        cut: listing.cut,
        ..Found::default()
    };
    let mut parts = Parts::new(voice);
    for part in files.chunks(PART_FILES) {
        if !parts.go_on(voice, found.bytes).await? {
            found.cut = true;
            break;
        }
        let (reader, part, wanted) = (folder.clone(), part.to_vec(), focus.wanted());
        let more = voice
            .work(move |stop| scan(&reader, &part, &wanted, stop))
            .await?;
        found.add(more);
        voice.progress(&call, status(&found, files.len())).await?;
    }
    let found = Arc::new(found);
    let places = ranked(voice, focus, &call, &found).await?;
    let reader = folder.clone();
    let sights = voice.work(move |stop| look(&reader, places, stop)).await?;
    // No work has it any more, so that this costs nothing.
    let found = Arc::unwrap_or_clone(found);
    let mut output = status(&found, files.len());
    for sight in &sights {
        let Place { path, line, .. } = &sight.place;
        let _ = writeln!(
            output,
            "{}:{line}: {}",
            shown_path(path),
            sight.line.trim_start()
        );
    }
    voice.give_back(call, output, false).await?;
    Ok((found, sights))
}

/// Ranks what was found: a common word may stand on as many lines as a folder has.
async fn ranked(
    voice: &mut Voice,
    focus: &Focus,
    call: &str,
    found: &Arc<Found>,
) -> Result<Vec<Place>, Stop> {
    let mut ranking = Ranking::default();
    let mut told = voice.link.timer(QUIET).fuse();
    loop {
        let (all, wanted) = (found.clone(), focus.wanted());
        let work = move |stop: &AtomicBool| {
            let more = ranking.go_on(&all, &wanted, PLACES, RANKED_LINES, stop);
            (ranking, more)
        };
        let more;
        (ranking, more) = voice.work(work).await?;
        if !more {
            return Ok(ranking.places());
        }
        if (&mut told).now_or_never().is_some() {
            let ranked = format!("ranked {} of {} files\n", ranking.files, found.files.len());
            voice.progress(call, ranked).await?;
            told = voice.link.timer(QUIET).fuse();
        }
    }
}

/// Reads around a place, for everyone to see.
pub(super) async fn read_place(voice: &mut Voice, sight: &Sight) -> Result<(), Stop> {
    let input = json!({"path": sight.place.path, "line": sight.place.line});
    let call = voice.call("read", &input).await?;
    voice.give_back(call, sight.excerpt.clone(), false).await
}

/// Reads some lines of a file that was named or that introduces the folder.
pub(super) async fn read_lines(
    voice: &mut Voice,
    folder: &Folder,
    path: &str,
    lines: Lines,
) -> Result<Result<Page, Unread>, Stop> {
    let input = json!({"path": path, "from": lines.from, "to": lines.to});
    let call = voice.call("read", &input).await?;
    let (reader, wanted) = (folder.clone(), path.to_owned());
    let work = move |stop: &AtomicBool| reader.page(&wanted, lines, stop);
    let page = voice.work_within(LONGEST, work).await?;
    let output = match &page {
        Ok(page) => page.lines.iter().map(|line| shown(line) + "\n").collect(),
        Err(error) => format!("{error}\n"),
    };
    voice.give_back(call, output, page.is_err()).await?;
    Ok(page)
}

/// Looks at places; those whose file changed or vanished meanwhile fall away.
fn look(folder: &Folder, places: Vec<Place>, stop: &AtomicBool) -> Vec<Sight> {
    let look = |place: Place| {
        let text = folder.read(&place.path, stop)?;
        let lines: Vec<&str> = text.lines().collect();
        let at = place.line.checked_sub(1)?;
        Some(Sight {
            line: shown(lines.get(at)?),
            inside: enclosing(&place.path, &lines, at),
            excerpt: excerpt(&lines, at),
            place,
        })
    };
    places.into_iter().filter_map(look).collect()
}

fn status(found: &Found, files: usize) -> String {
    format!(
        "read {} of {files} files; {} lines match\n",
        found.read, found.lines
    )
}

/// The folders with their numbers of files, and the files at the top.
fn overview(listing: &Listing) -> String {
    let mut folders: BTreeMap<&str, usize> = BTreeMap::new();
    for file in &listing.files {
        for folder in parents(&file.path).take(2) {
            *folders.entry(folder).or_default() += 1;
        }
    }
    let more = if listing.cut {
        " (more were not listed)"
    } else {
        ""
    };
    let mut text = format!("{} files{more}\n", listing.files.len());
    let folders = folders.iter().map(|(folder, count)| {
        let indent = "  ".repeat(folder.matches('/').count());
        format!("{indent}{}/ ({count})", shown(folder))
    });
    let top = listing.files.iter().filter(|file| !file.path.contains('/'));
    let top = top.map(|file| shown(&file.path));
    for line in folders.chain(top).take(OVERVIEW_LINES) {
        let _ = writeln!(text, "{line}");
    }
    text
}
