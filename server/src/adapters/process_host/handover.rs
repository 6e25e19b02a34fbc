//! One message with descriptors beside it, over a socket: what is to be set up, and with what.

use std::io::{self, IoSlice, IoSliceMut, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

use super::order::{Order, Plan};

/// Descriptors that go with every message: standard input, output and error, and the folder.
const ALWAYS: usize = 4;
/// And with the largest: the folders beside.
const DESCRIPTORS: usize = ALWAYS + Order::MOST_BESIDE;
/// The largest message. It fits into what a socket holds, so that giving it never waits.
const BYTES: usize = 64 * 1024;

/// What a program gets.
pub(super) struct Streams<D> {
    pub(super) input: D,
    pub(super) output: D,
    pub(super) error: D,
    pub(super) folder: D,
    pub(super) beside: Vec<D>,
}

/// Gives a plan and what goes with it.
///
/// # Errors
/// When the plan is too large, or the other end is gone.
pub(super) fn give(
    socket: &UnixStream,
    plan: &Plan,
    streams: &Streams<BorrowedFd<'_>>,
) -> io::Result<()> {
    let text = serde_json::to_vec(plan).map_err(io::Error::other)?;
    let Some(length) = u32::try_from(text.len())
        .ok()
        .filter(|_| text.len() <= BYTES)
    else {
        let problem = format!(
            "arguments and environment have {} bytes, at most {BYTES}",
            text.len()
        );
        return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
    };
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    let mut descriptors = vec![streams.input, streams.output, streams.error, streams.folder];
    descriptors.extend(&streams.beside);
    if !beside.push(SendAncillaryMessage::ScmRights(&descriptors)) {
        return Err(io::Error::other("the descriptors have no room"));
    }
    // They come with the first bytes.
    let head = [IoSlice::new(&length.to_be_bytes())].map(|slice| slice.to_vec());
    let sent = sendmsg(
        socket,
        &[IoSlice::new(&head[0])],
        &mut beside,
        SendFlags::NOSIGNAL,
    )?;
    if sent != head[0].len() {
        return Err(io::ErrorKind::WriteZero.into());
    }
    (&mut &*socket).write_all(&text)
}

/// Takes what [`give`] gives. Blocks until it is there.
///
/// # Errors
/// When the other end is gone, or says something else.
pub(super) fn take(socket: &UnixStream) -> io::Result<(Plan, Streams<OwnedFd>)> {
    let mut length = [0; 4];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let mut into = [IoSliceMut::new(&mut length)];
    let received = recvmsg(socket, &mut into, &mut beside, RecvFlags::CMSG_CLOEXEC)?;
    if received.bytes != 4 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let mut descriptors = Vec::new();
    for message in beside.drain() {
        if let RecvAncillaryMessage::ScmRights(given) = message {
            descriptors.extend(given);
        }
    }
    let missing = || io::Error::other("descriptors are missing");
    if descriptors.len() < ALWAYS {
        return Err(missing());
    }
    let beside = descriptors.split_off(ALWAYS);
    let always: [OwnedFd; ALWAYS] = descriptors.try_into().map_err(|_| missing())?;
    let [input, output, error, folder] = always;
    let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
    if length > BYTES {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut text = vec![0; length];
    (&mut &*socket).read_exact(&mut text)?;
    let plan: Plan = serde_json::from_slice(&text).map_err(io::Error::other)?;
    if plan.beside.len() != beside.len() {
        return Err(missing());
    }
    let streams = Streams {
        input,
        output,
        error,
        folder,
        beside,
    };
    Ok((plan, streams))
}
